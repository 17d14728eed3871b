/** Connects a bucket on request, and starts the first re-index of a bucket that is new. */
import type { AddBucketRequest, ChangeBucketRequest } from '../../api/buckets.ts';
import { asksForMore, refuseTopic, type BucketRecord } from '../../domain/bucket.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { ConnectBucket } from '../buckets/connect.ts';
import type { CheckConnection } from '../provision/watch.ts';
import { readRecord, refs } from '../records/stored.ts';
import type { ReindexJobs } from './reindex-jobs.ts';
import { requireBucket } from '../buckets/list.ts';
import type { WithPorts } from '../ports/ports.ts';

interface AddBucketDependencies extends WithPorts<'state' | 'telemetry'> {
  readonly connectBucket: Pick<ConnectBucket, 'connect'>;
  readonly checkConnection: CheckConnection;
  readonly jobs: Pick<ReindexJobs, 'request'>;
}

interface Added {
  readonly record: BucketRecord;
  /** It is new, or it is connected in another way than before. */
  readonly isChanged: boolean;
  /** The first re-index, if one was started. */
  readonly jobId: string | undefined;
  /** The bucket asks for more enrichment than before, which the documents lack that are indexed already. */
  readonly isFillWanted: boolean;
}

type AddBucket = (request: AddBucketRequest, by: string, signal?: AbortSignal) => Promise<Added>;

/** Connects a bucket. Throws as ConnectBucket.connect() does. */
export function createAddBucket({ state, connectBucket, checkConnection, jobs, telemetry }: AddBucketDependencies): AddBucket {
  return async function addBucket(request, by, signal) {
    const before = await readRecord(state, refs.bucket(request.bucket), signal);
    refuseTopic(request.source ?? before?.source ?? 'notification', request.topic_arn);
    const isNew = before === undefined;
    const record = await connectBucket.connect(request, by, signal);
    // an apply makes the parts that a check would miss
    if (record.provenAtMs === undefined && request.apply !== true) await checkNow(record, signal);
    const jobId = isNew && request.reindex !== false ? await startFirst(request, by, signal) : undefined;
    return {
      record,
      isChanged: before === undefined || !isSameWay(before, record),
      jobId,
      isFillWanted: before !== undefined && asksForMore(before.enrich, record.enrich),
    };
  };

  /** Whether its events arrive is known before the first job begins, if AWS shows it; the watch checks again soon. */
  async function checkNow(record: BucketRecord, signal?: AbortSignal): Promise<void> {
    try {
      await checkConnection(record, signal);
    } catch (error) {
      signal?.throwIfAborted();
      // the embedded storage has no parts in AWS
      if (error instanceof RequestError) return;
      telemetry.requestFailed('check the connection of a new bucket', error);
    }
  }

  /**
   * The bucket is connected and has its gap, so a job that cannot start now is started by the calendar. While its parts in AWS
   * are being made no job can prove anything, so the first one does not wait: the bucket is searchable at once, and the job of
   * its gap follows when the change has taken effect.
   */
  async function startFirst({ bucket, apply }: AddBucketRequest, by: string, signal?: AbortSignal): Promise<string | undefined> {
    try {
      const job = await jobs.request({ bucket, prefix: '', mode: 'apply', fill: false, now: apply === true }, by, signal);
      return job.id;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof RequestError)) telemetry.requestFailed('start the first re-index', error);
      return undefined;
    }
  }
}

function isSameWay(before: BucketRecord, after: BucketRecord): boolean {
  const settings = ({ region, source, topicArn, enrich, account }: BucketRecord): string =>
    JSON.stringify([region, source, topicArn, enrich, account]);
  return settings(before) === settings(after);
}

interface Changed {
  readonly record: BucketRecord;
  /** The bucket asks for more enrichment than before, which the documents lack that are indexed already. */
  readonly isFillWanted: boolean;
  /** The source by which its parts in AWS were made, if that is another one. */
  readonly madeFor?: BucketRecord['source'];
}

type ChangeBucket = (bucket: string, request: ChangeBucketRequest, by: string, signal?: AbortSignal) => Promise<Changed>;

/**
 * Changes the record of a connected bucket. Its parts in AWS are left alone: the earlier ones deliver until an apply has made
 * others, and what comes by another way than the source says is observed instead of believed, so that nothing is missed.
 * Throws `bucket.not-connected`, `request.invalid`, and what ConnectBucket.connect() throws.
 */
export function createChangeBucket({ state, connectBucket }: Pick<AddBucketDependencies, 'state' | 'connectBucket'>): ChangeBucket {
  return async function changeBucket(bucket, request, by, signal) {
    const before = await requireBucket(state, bucket, signal);
    refuseTopic(request.source ?? before.source, request.topic_arn);
    const record = await connectBucket.connect({ bucket, ...request }, by, signal);
    const connection = await readRecord(state, refs.connection(bucket), signal);
    const isMadeForAnother = connection !== undefined && connection.source !== record.source;
    return {
      record,
      isFillWanted: asksForMore(before.enrich, record.enrich),
      ...(isMadeForAnother && { madeFor: connection.source }),
    };
  };
}
