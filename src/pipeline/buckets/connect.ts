/**
 * Connects buckets: the events of a connected bucket are indexed. A bucket's record is stored only after its index was
 * created, so a worker that reads the record can write documents.
 */
import type { AddBucketRequest } from '../../api/buckets.ts';
import type { BucketRecord, BucketSource } from '../../domain/bucket.ts';
import { RequestError } from '../../domain/request-error.ts';
import { absorbUnconnected, type GapReports } from '../gaps/reports.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { TopicClient } from '../ports/queues.ts';
import type { StateStore } from '../ports/state.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

/** The `createdBy` of a bucket that was connected at its first event. */
const AUTO_CONNECT = 'auto-connect';

export interface ConnectBucket {
  /**
   * Connects the bucket. If the bucket is connected already, it changes source, topic and enrich as far as they are given,
   * and creates the parts of its index that are missing. Throws `request.invalid`, S3's faults (`bucket.missing` if there
   * is no such bucket) and the store's faults.
   */
  connect(request: AddBucketRequest, by: string, signal?: AbortSignal): Promise<BucketRecord>;
  /** Connects the bucket of a first event with the source that the event came from. Returns undefined if `max` buckets, however connected, exist already. */
  autoConnect(bucket: string, source: BucketSource, max: number): Promise<BucketRecord | undefined>;
  /** Reads region and versioning again and stores them. Returns undefined if the bucket was disconnected in the meantime. */
  refresh(bucket: string, signal?: AbortSignal): Promise<BucketRecord | undefined>;
}

interface ConnectDependencies {
  readonly state: StateStore;
  readonly objects: ObjectIndex;
  readonly storage: ObjectStorage;
  readonly gaps: GapReports;
  /** Absent if the existence of topics is not checked. */
  readonly topics?: Pick<TopicClient, 'isMissing'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Creates the functions that connect buckets. */
export function createConnectBucket(dependencies: ConnectDependencies): ConnectBucket {
  const { state, objects, storage, topics, clock, telemetry } = dependencies;

  async function connect(wishes: AddBucketRequest, by: string, signal?: AbortSignal): Promise<BucketRecord> {
    const { bucket } = wishes;
    const current = await readRecord(state, refs.bucket(bucket), signal);
    if (wishes.topic_arn !== undefined && (await topics?.isMissing(wishes.topic_arn, signal)) === true) {
      throw new RequestError('request.invalid', `topic_arn: there is no topic ${wishes.topic_arn}`);
    }
    const fresh = current ?? { ...(await readBucket(bucket, signal)), createdBy: by };
    requireTopic(changed(fresh, wishes));
    await objects.createBucket(bucket, signal);
    const record = await updateRecord(state, refs.bucket(bucket), (stored) => requireTopic(changed(stored ?? fresh, wishes)));
    if (current === undefined) telemetry.bucketConnected(bucket, by);
    await absorbUnconnected(dependencies, bucket);
    return record;
  }

  /** Reads the bucket from S3 and returns a record with the default settings. */
  async function readBucket(bucket: string, signal?: AbortSignal): Promise<Omit<BucketRecord, 'createdBy'>> {
    const region = await storage.regionOf(bucket, signal);
    const versioning = await storage.versioningOf({ bucket, region }, signal);
    const nowMs = clock.nowMs();
    return { bucket, region, versioning, source: 'notification', enrich: 'none', floor: 0, createdAtMs: nowMs, checkedAtMs: nowMs };
  }

  return {
    connect,
    async autoConnect(bucket, source, max) {
      if ((await state.count('bucket')) >= max) return undefined;
      return connect({ bucket, source }, AUTO_CONNECT);
    },
    async refresh(bucket, signal) {
      const { region, versioning, checkedAtMs } = await readBucket(bucket, signal);
      return updateRecord(state, refs.bucket(bucket), (current) =>
        current === undefined ? undefined : { ...current, region, versioning: laterOf(current.versioning, versioning), checkedAtMs },
      );
    },
  };
}

function changed(record: BucketRecord, { source, topic_arn: topicArn, enrich }: AddBucketRequest): BucketRecord {
  const { topicArn: oldTopicArn, ...rest } = record;
  // a topic belongs to its source: a new source without a topic must not keep the old one
  const keptTopicArn = source === undefined || source === record.source ? oldTopicArn : undefined;
  const newTopicArn = topicArn ?? keptTopicArn;
  return {
    ...rest,
    ...(source !== undefined && { source }),
    ...(newTopicArn !== undefined && { topicArn: newTopicArn }),
    ...(enrich !== undefined && { enrich }),
  };
}

function requireTopic(record: BucketRecord): BucketRecord {
  if (record.source !== 'topic' || record.topicArn !== undefined) return record;
  throw new RequestError(
    'request.invalid',
    'topic_arn: must be given for the source topic: the ARN of the SNS topic that receives the bucket’s events',
  );
}

/** Keeps the later reading: `unknown` has the moment 0, and a slower reader may have sent its request earlier. */
function laterOf(stored: BucketRecord['versioning'], read: BucketRecord['versioning']): BucketRecord['versioning'] {
  return read.observedAtMs >= stored.observedAtMs ? read : stored;
}
