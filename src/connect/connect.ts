/**
 * Connects buckets, so that Tally indexes their events. A bucket's record is stored after its index was created, so that every worker
 * that reads the record can write documents, and after its first gap, because its existing objects were never compared.
 */
import { defined } from '../base/defined.ts';
import { DIRECTORY_BUCKET, isDirectoryBucket, type BucketRecord } from '../records/bucket.ts';
import type { ConnectionRequest } from './plan.rules.ts';
import { lastBeginOf } from '../records/job.ts';
import { RequestError } from '../base/request-error.ts';
import { indexIdOf, noteIndex } from './index-identity.ts';
import { absorbUnconnected, openNeverCompared, proveGap, type GapReports } from '../observing/gaps.ts';
import type { ObjectIndex, WithPorts } from '../store/store.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../store/stored.ts';

/** A request to connect. What is absent stays as it is. The source and the topic are those of a new bucket: a connected one's follow what was made in AWS. */
export interface ConnectRequest extends ConnectionRequest {
  /** Whether the first re-index of a new bucket starts without being requested. Default: true. */
  readonly reindex?: boolean;
}

export type ConnectBucket = ReturnType<typeof createConnectBucket>;

interface ConnectDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly objects: ObjectIndex;
  readonly storage: ObjectStorage;
  readonly gaps: GapReports;
  /** The buckets are those of the embedded storage, which sends an event for each change. Default: false. */
  readonly isEmbedded?: boolean;
}

/** Creates the functions that connect buckets. */
export function createConnectBucket(dependencies: ConnectDependencies) {
  const { state, objects, storage, gaps, clock, telemetry, isEmbedded = false } = dependencies;

  /**
   * Connects the bucket, with an open gap for its existing objects. If it is already connected, this changes the given fields of enrich
   * and account, reads region and versioning again, and recreates a missing index, with an open gap for what the index held. Throws
   * `request.invalid` for a directory bucket, S3's faults (`bucket.missing` if there is no such bucket) and the store's faults. What else
   * cannot be connected is refused before (requested.ts).
   */
  async function connect(request: ConnectRequest, by: string, signal?: AbortSignal): Promise<BucketRecord> {
    const { bucket, source, topic_arn: topicArn, enrich, bucket_account: account } = request;
    // in embedded mode Tally does not ask AWS, which would otherwise refuse it earlier
    if (isDirectoryBucket(bucket)) throw new RequestError('request.invalid', `bucket: ${bucket} ${DIRECTORY_BUCKET}`);
    const ref = refs.bucket(bucket);
    const current = await readRecord(state, ref, signal);
    const read = await readBucket({ bucket, account: account ?? current?.account }, signal);
    const atMs = read.checkedAtMs;
    const fresh: BucketRecord = {
      bucket,
      ...read,
      ...DEFAULTS,
      ...defined({ source, topicArn, enrich, account }),
      createdAtMs: atMs,
      createdBy: by,
      ...(isEmbedded && { provenAtMs: atMs }),
    };
    const after = (stored: BucketRecord | undefined): BucketRecord =>
      stored === undefined ? fresh : { ...withRead(stored, read), ...defined({ enrich, account }) };
    const planned = after(current);
    await objects.createBucket(bucket, signal);
    const indexId = await indexIdOf(dependencies, bucket, signal);
    const firstGap = {
      bucket,
      enrich: planned.enrich,
      seenAtMs: beforeFirstJob(read),
      order: lastBeginOf(fresh),
      isHeld: request.reindex === false,
      isProven: isEmbedded,
    };
    if (current === undefined) await openNeverCompared(dependencies, firstGap, 'before');
    else {
      await noteIndex(dependencies, bucket, signal);
      await reportChangesOf(current, planned);
    }
    const record = await updateRecord(state, ref, (stored) => (stored === undefined ? { ...after(stored), indexId } : after(stored)));
    if (current === undefined) {
      await openNeverCompared(dependencies, firstGap, 'after');
      // another process may have connected it meanwhile and seen its events arrive
      if (record.provenAtMs !== undefined) await proveGap(dependencies, record);
      telemetry.info('bucket connected', { bucket, by });
      // the gap covers the events that were dropped earlier
      await removeRecord(state, refs.unconnected(bucket).id);
    }
    await absorbUnconnected(dependencies, bucket);
    return record;
  }

  async function readBucket({ bucket, account }: Pick<BucketRecord, 'bucket' | 'account'>, signal?: AbortSignal): Promise<Reading> {
    const region = await storage.regionOf(bucket, signal);
    const sentMs = clock.nowMs();
    const versioning = await storage.versioningOf({ bucket, region, account }, signal);
    const s3AheadMs = versioning.status === 'unknown' ? undefined : versioning.observedAtMs - sentMs;
    return { region, versioning, checkedAtMs: clock.nowMs(), ...(s3AheadMs !== undefined && { s3AheadMs }) };
  }

  /** Opens a gap if the record's change shows that events were lost. The caller stores the record afterwards. */
  async function reportLossOf(before: BucketRecord, after: BucketRecord): Promise<void> {
    const { bucket, region, versioning } = after;
    if (before.region === region) return;
    const seenAtMs = Math.max(clock.nowMs(), versioning.observedAtMs);
    await gaps.report({ bucket, kind: 'connection', reason: `the bucket was recreated in ${region}`, seenAtMs });
  }

  /** Opens the gaps of what a request changes in a connected bucket. */
  async function reportChangesOf(before: BucketRecord, after: BucketRecord): Promise<void> {
    if (before.enrich !== 'tags' && after.enrich === 'tags') {
      const seenAtMs = Math.max(clock.nowMs(), after.versioning.observedAtMs);
      await gaps.report({ bucket: after.bucket, kind: 'tags', reason: NO_TAGS, seenAtMs, tags: true });
    }
    await reportLossOf(before, after);
  }

  return {
    connect,
    /** Reads region and versioning again and stores them. Resolves with undefined if the bucket was disconnected in the meantime. */
    async refresh(bucket: string, signal?: AbortSignal): Promise<BucketRecord | undefined> {
      const before = await readRecord(state, refs.bucket(bucket), signal);
      if (before === undefined) return undefined;
      const read = await readBucket(before, signal);
      await reportLossOf(before, withRead(before, read));
      return updateRecord(state, refs.bucket(bucket), (current) => current && withRead(current, read));
    },
  };
}

const NO_TAGS = 'documents from before the bucket was enriched with tags have no tags';

/** The fields that a request may omit. */
const DEFAULTS = { source: 'notification', enrich: 'none', floor: 0 } as const;

/** S3's clock has whole seconds, and the durations of two requests differ. */
const CLOCK_SLACK_MS = 5_000;

/**
 * A time before any of the bucket's jobs, so that the first job covers it even if it begins within the same second. A job's cover is
 * judged by S3's clock and by this machine's, so the earlier of both counts.
 */
function beforeFirstJob({ versioning, checkedAtMs }: Reading): number {
  const s3Ms = versioning.status === 'unknown' ? checkedAtMs : versioning.observedAtMs;
  return Math.min(s3Ms, checkedAtMs) - CLOCK_SLACK_MS;
}

type Reading = Pick<BucketRecord, 'region' | 'versioning' | 'checkedAtMs' | 's3AheadMs'>;

function withRead(record: BucketRecord, { region, versioning, ...read }: Reading): BucketRecord {
  const { s3AheadMs: _, ...stored } = record;
  return { ...stored, ...read, region, versioning: laterOf(stored.versioning, versioning) };
}

/** Keeps the later reading: `unknown` has the moment 0, and a slower reader may have sent its request earlier. */
function laterOf(stored: BucketRecord['versioning'], read: BucketRecord['versioning']): BucketRecord['versioning'] {
  return read.observedAtMs >= stored.observedAtMs ? read : stored;
}
