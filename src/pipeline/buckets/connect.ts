/**
 * Connecting a bucket: from then on its events are indexed. A record is only ever stored after its index was made, so
 * whoever sees the record can write.
 */
import { z } from 'zod';
import { bucketSources, enrichModes, isBucketName, type BucketRecord, type BucketSource } from '../../domain/bucket.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AddBucketRequest } from '../control/control.ts';
import { absorbUnconnected, type GapReports } from '../gaps/reports.ts';
import { parseRequest } from '../records/pages.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

const TOPIC_ARN = /^arn:aws[a-z0-9-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$/;
/** Who connected a bucket that nobody asked for. */
const AUTO_CONNECT = 'auto-connect';

const addSchema = z.strictObject({
  bucket: z.string({ error: 'must be the name of a bucket' }).refine(isBucketName, 'must be the name of a bucket'),
  source: z.enum(bucketSources, { error: `must be one of ${bucketSources.join(', ')}` }).optional(),
  topicArn: z.string().regex(TOPIC_ARN, 'must be the ARN of an SNS topic').optional(),
  enrich: z.enum(enrichModes, { error: `must be one of ${enrichModes.join(', ')}` }).optional(),
});
type Wishes = z.infer<typeof addSchema>;

export interface ConnectBucket {
  /**
   * Connects the bucket; of one that is connected already it changes source, topic and enrich where given, and
   * re-creates what is missing of its index. Throws `request.invalid`, S3's faults (`bucket.missing` when there is no
   * such bucket) and the store's.
   */
  connect(request: AddBucketRequest, by: string, signal?: AbortSignal): Promise<BucketRecord>;
  /** Connects at the first event, with the source that the event came by, unless `max` buckets are connected already, however they were: then undefined. */
  autoConnect(bucket: string, source: BucketSource, max: number): Promise<BucketRecord | undefined>;
  /** Reads region and versioning again and stores them. Undefined when the bucket was disconnected meanwhile. */
  refresh(bucket: string, signal?: AbortSignal): Promise<BucketRecord | undefined>;
}

interface ConnectDependencies {
  readonly state: StateStore;
  readonly objects: ObjectIndex;
  readonly storage: ObjectStorage;
  readonly gaps: GapReports;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Creates the connecting of buckets. */
export function createConnectBucket(dependencies: ConnectDependencies): ConnectBucket {
  const { state, objects, storage, clock, telemetry } = dependencies;

  async function connect(request: AddBucketRequest, by: string, signal?: AbortSignal): Promise<BucketRecord> {
    const wishes = parseRequest(addSchema, request);
    const { bucket } = wishes;
    const current = await readRecord(state, refs.bucket(bucket), signal);
    const fresh = current ?? { ...(await lookAt(bucket, signal)), createdBy: by };
    requireTopic(changed(fresh, wishes));
    await objects.createBucket(bucket, signal);
    const record = await updateRecord(state, refs.bucket(bucket), (stored) => requireTopic(changed(stored ?? fresh, wishes)));
    if (current === undefined) telemetry.bucketConnected(bucket, by);
    await absorbUnconnected(dependencies, bucket);
    return record;
  }

  /** What S3 says of the bucket, as a record that nobody changed yet. */
  async function lookAt(bucket: string, signal?: AbortSignal): Promise<Omit<BucketRecord, 'createdBy'>> {
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
      const { region, versioning, checkedAtMs } = await lookAt(bucket, signal);
      return updateRecord(state, refs.bucket(bucket), (current) =>
        current === undefined ? undefined : { ...current, region, versioning: laterOf(current.versioning, versioning), checkedAtMs },
      );
    },
  };
}

function changed(record: BucketRecord, { source, topicArn, enrich }: Wishes): BucketRecord {
  const { topicArn: oldTopicArn, ...rest } = record;
  // another source without a topic of its own leaves the old one's topic behind
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
    'topicArn: must be given with source topic: the ARN of the topic that receives the bucket’s events',
  );
}

/** An "unknown" (its moment is 0) tells nothing, and a slower reader may have looked earlier. */
function laterOf(stored: BucketRecord['versioning'], read: BucketRecord['versioning']): BucketRecord['versioning'] {
  return read.observedAtMs >= stored.observedAtMs ? read : stored;
}
