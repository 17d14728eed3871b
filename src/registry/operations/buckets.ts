/** Connects a bucket on request, or changes how it is connected, and starts the first re-index of one that is new. Disconnects it without touching the bucket itself. */
import type { AddBucketRequest } from '../contract/buckets.ts';
import type { ConnectionView } from '../contract/connections.ts';
import { asksForMore, refuseTopic, type BucketRecord } from '../../records/bucket.ts';
import { defined } from '../../base/defined.ts';
import { RequestError } from '../../base/request-error.ts';
import type { ConnectBucket } from '../../connect/connect.ts';
import { readRecord, refs, removeRecord, pagesOf, gapIdsOf } from '../../store/stored.ts';
import type { Connections } from '../../connect/connections.ts';
import type { ReindexJobs } from '../../repair/job-requests.ts';
import { requireBucket, notConnected } from '../../observing/buckets.ts';
import type { WithPorts, ObjectIndex, StateStore } from '../../store/store.ts';
import { newWebhookToken } from '../../connect/sources/webhook.ts';
import { isBucketName } from '../../base/bucket-name.ts';
import { lastBeginOf } from '../../records/job.ts';
import { noteIndex } from '../../connect/index-identity.ts';
import { openNeverCompared, type GapReports } from '../../observing/gaps.ts';

interface AddBucketDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly connectBucket: Pick<ConnectBucket, 'connect'>;
  readonly connections: Pick<Connections, 'check' | 'apply'>;
  readonly jobs: Pick<ReindexJobs, 'request'>;
}

interface Added {
  readonly record: BucketRecord;
  /** The state of its parts in AWS. Absent: it needs none. */
  readonly connection: ConnectionView | undefined;
  /** Its webhook's token, if it had none before. */
  readonly token: string | undefined;
  /** Whether it is new, or connected in another way than before. */
  readonly isChanged: boolean;
  /** The first re-index, if one was started. */
  readonly jobId: string | undefined;
  /** Whether the bucket has more enrichment than before, which its existing documents lack. */
  readonly isFillWanted: boolean;
}

/**
 * Connects a bucket: its index, its mark and its record, then its parts in AWS, then its first re-index. A refused request stores
 * nothing. Throws what ConnectBucket.connect() and an apply throw.
 */
export async function addBucket(parts: AddBucketDependencies, request: AddBucketRequest, by: string, signal: AbortSignal): Promise<Added> {
  const { state, connectBucket, connections } = parts;
  const { bucket } = request;
  const before = await readRecord(state, refs.bucket(bucket), signal);
  refuseTopic(sourceOf(request, before), request.topic_arn);
  const agreement = defined({ token: request.plan, isSwitchAgreed: request.switch_on_eventbridge });
  const hasParts = await connections.check(request, agreement, signal);
  // a connected bucket's record follows once the new source's parts are made: until then, the earlier ones deliver
  await connectBucket.connect(request, by, signal);
  const connection = hasParts ? await connections.apply(request, agreement, signal) : undefined;
  const token = await newWebhookToken(parts, bucket, ({ webhookTokens = [] }) => webhookTokens.length === 0);
  const record = await requireBucket(state, bucket, signal);
  if (before !== undefined)
    return {
      record,
      connection,
      token,
      isChanged: !isSameWay(before, record),
      jobId: undefined,
      isFillWanted: asksForMore(before.enrich, record.enrich),
    };
  const jobId = request.reindex === false ? undefined : await startFirst(parts, { bucket, now: hasParts }, by, signal);
  return { record, connection, token, isChanged: true, jobId, isFillWanted: false };
}

/**
 * The bucket is connected and has its gap, so a job that cannot start now is started by the calendar. While AWS applies its parts
 * no job can prove anything, so the first one does not wait: the bucket is searchable at once, and the job of its gap follows when
 * the change has taken effect.
 */
async function startFirst(
  { jobs, telemetry }: AddBucketDependencies,
  request: { readonly bucket: string; readonly now: boolean },
  by: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const job = await jobs.request({ ...request, prefix: '', mode: 'apply', fill: false }, by, signal);
    return job.id;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RequestError)) telemetry.requestFailed('start the first re-index', error);
    return undefined;
  }
}

function sourceOf({ source }: AddBucketRequest, before: BucketRecord | undefined): BucketRecord['source'] {
  return source ?? before?.source ?? 'notification';
}

function isSameWay(before: BucketRecord, after: BucketRecord): boolean {
  const settings = ({ region, source, topicArn, enrich, account }: BucketRecord): string =>
    JSON.stringify([region, source, topicArn, enrich, account]);
  return settings(before) === settings(after);
}

// ── disconnecting ──────────────────────────────────────────────────────────────────────────────────────────────────

interface DisconnectDependencies extends WithPorts<'state' | 'clock'> {
  readonly objects: ObjectIndex;
  readonly jobs: Pick<ReindexJobs, 'cancelOf'>;
  readonly gaps: Pick<GapReports, 'report'>;
}

/**
 * Cancels the bucket's jobs, deletes the record, so that workers stop indexing within C (10 s), and deletes the documents and the gaps.
 * A second call completes a removal that was interrupted, and then throws `bucket.not-connected`.
 */
export async function disconnectBucket(parts: DisconnectDependencies, bucket: string, signal?: AbortSignal): Promise<void> {
  const { state, objects, jobs } = parts;
  if (!isBucketName(bucket)) throw notConnected(bucket);
  await jobs.cancelOf(bucket);
  const record = await readRecord(state, refs.bucket(bucket), signal);
  await removeRecord(state, refs.bucket(bucket).id);
  // a job that was started in the meantime
  await jobs.cancelOf(bucket);
  await objects.removeBucket(bucket, signal);
  await removeGaps(state, bucket);
  await removeRecord(state, refs.gapHistory(bucket).id);
  const again = await readRecord(state, refs.bucket(bucket), signal);
  if (again !== undefined) await restore(parts, again, signal);
  if (record === undefined) throw notConnected(bucket);
}

async function removeGaps(state: StateStore, bucket: string): Promise<void> {
  for await (const page of pagesOf(state, 'gap', { prefix: gapIdsOf(bucket) })) for (const { id } of page) await removeRecord(state, id);
}

/** The bucket was connected again in the meantime, so its record needs an index and its gap. */
async function restore(parts: DisconnectDependencies, again: BucketRecord, signal: AbortSignal | undefined): Promise<void> {
  const { bucket, enrich, provenAtMs } = again;
  const isProven = provenAtMs !== undefined;
  const mark = { bucket, enrich, seenAtMs: parts.clock.nowMs(), order: lastBeginOf(again), isHeld: false, isProven };
  await openNeverCompared(parts, mark, 'after');
  await parts.objects.createBucket(bucket, signal);
  // the record may name the removed index: if only the next watch found that, it would cost another re-index
  await noteIndex(parts, bucket, signal);
}
