/** What is wrong with the connection of a bucket. It only reads, and what cannot be read is a finding too. */
import type { BucketRecord, Connection } from '../records/bucket.ts';
import { defined } from '../base/defined.ts';
import { adviceAbout, FaultError, faultOf, type FaultCode } from '../base/fault.ts';
import { RequestError } from '../base/request-error.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import { requireBucket } from '../observing/known-buckets.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import { readRecord, refs } from '../store/stored.ts';
import { settledEarlier } from './apply.ts';
import { broken, clockSkew, degraded, NOT_ENRICHED, unprovenFindings, type Finding } from './finding.rules.ts';
import { passesBoth } from './notification.rules.ts';
import type { ConnectionRequest, Plan } from './plan.rules.ts';
import { ownTopicOf, probeFindings } from './probe.ts';
import { requested, type ConnectionParts } from './requested.ts';
import { queueIn } from './sources/look.ts';
import { diff, type LookAt } from './sources/sources.ts';
import type { CheckConnection } from './watch.ts';

interface DiagnoseParts extends ConnectionParts {
  readonly lookAt: LookAt;
}

export interface Diagnosed {
  readonly findings: readonly Finding[];
  /** The notification configuration sends every created and removed event to the bucket's topic or queue. */
  readonly passesBoth: boolean;
}

interface DoctorParts extends WithPorts<'state' | 'clock'> {
  readonly checkConnection: CheckConnection;
  readonly storage: Pick<ObjectStorage, 'firstKey'>;
}

/** The doctor's report on a connected bucket: what its check finds, whether Tally can list the bucket, and which events have not arrived yet. */
export async function doctor(parts: DoctorParts, bucket: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const { state, clock, checkConnection } = parts;
  const before = await requireBucket(state, bucket, signal);
  const checked = await checkConnection(before, signal);
  const unlisted = (await listingFindings(parts, before, signal)).filter(({ code }) => checked.every((found) => found.code !== code));
  // the check may have proven it
  return [...checked, ...unlisted, ...unprovenFindings(await requireBucket(state, bucket, signal), clock.nowMs())];
}

/** What does not pass by itself. */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['object.denied', 'bucket.denied', 'bucket.missing']);

/** Events arrive also where what would repair the index is denied. The watch does not ask: a LIST costs twelve times another read. */
async function listingFindings(
  { storage }: DoctorParts,
  { bucket, region, account }: BucketRecord,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  try {
    await storage.firstKey({ bucket, region, account }, signal);
    return [];
  } catch (error) {
    signal.throwIfAborted();
    const { code, reason } = faultOf(error);
    const what = `${bucket} cannot be listed: ${reason}`;
    const found = broken(code, what, 'a re-index needs the listing to repair the index', adviceAbout(code, bucket));
    return [REFUSALS.has(code) ? found : { ...found, severity: 'unknown' }];
  }
}

/** What is wrong with the connection of a bucket. Throws `connect.embedded` only. */
export async function diagnose(parts: DiagnoseParts, record: BucketRecord, signal?: AbortSignal): Promise<Diagnosed> {
  const connection = await readable(record, () => diagnoseConnection(parts, record, signal), signal);
  // S3 would fail again, and be found twice
  if (!('passesBoth' in connection)) return only(connection);
  const clock = await readable(record, () => diagnoseClock(parts, record, signal), signal);
  return { ...connection, findings: [...connection.findings, ...clock, ...(await diagnoseEnrichment(parts, record, signal))] };
}

/** What was read; a read that fails is a finding. */
async function readable<Read>(
  { bucket }: BucketRecord,
  read: () => Promise<Read>,
  signal: AbortSignal | undefined,
): Promise<Read | readonly Finding[]> {
  try {
    return await read();
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof RequestError && error.code === 'connect.embedded') throw error;
    return [unreadFinding(bucket, error)];
  }
}

async function diagnoseConnection(parts: DiagnoseParts, record: BucketRecord, signal: AbortSignal | undefined): Promise<Diagnosed> {
  const { state, clock, lookAt } = parts;
  const { bucket, provenAtMs, connection } = record;
  const rightful = connection === undefined ? [] : changingFindings(connection);
  if (rightful.length > 0) return only(rightful);
  const { spec } = await requested(parts, askedOf(record), signal, connection?.queueArn);
  const look = await lookAt(spec, signal);
  const plan = diff(look);
  if (connection === undefined) return only([...plan.findings, ...(provenAtMs === undefined ? notMade(plan) : [])]);
  const topicArn = ownTopicOf(spec);
  const probe = topicArn === undefined ? undefined : await readRecord(state, refs.probe(topicArn), signal);
  const { notification } = look.observed;
  return {
    findings: [
      ...notMade(plan),
      ...plan.findings,
      ...probeFindings(probe, queueIn(look.observed, spec.queueArn), clock.nowMs()),
      ...(await leftFindings(state, bucket, signal)),
    ],
    passesBoth: notification.ok && passesBoth(spec, notification.configuration),
  };
}

/** What the bucket is connected by. How one is wired of which nothing was made is not known, but that its events arrive is. */
function askedOf({ bucket, provenAtMs, connection }: BucketRecord): ConnectionRequest {
  if (connection === undefined) return { bucket, ...(provenAtMs !== undefined && { wired_by_hand: true }) };
  const { source, topicArn, enrich, bucketAccount, byHand } = connection;
  return { bucket, source, enrich, bucket_account: bucketAccount, wired_by_hand: byHand === true, ...defined({ topic_arn: topicArn }) };
}

/** Measured now, because the stored value may predate a clock's correction. A slow answer is less precise, so both ends are compared. */
async function diagnoseClock(
  { storage, clock }: DiagnoseParts,
  { bucket, region, account }: BucketRecord,
  signal?: AbortSignal,
): Promise<readonly Finding[]> {
  const sentAtMs = clock.nowMs();
  const versioning = await storage.versioningOf({ bucket, region, account }, signal);
  if (versioning.status === 'unknown') return [];
  return clockSkew(bucket, { s3AtMs: versioning.observedAtMs, sentAtMs, answeredAtMs: clock.nowMs() });
}

/** Asks for one object what enrichment reads. What does not answer, or cannot be listed, is found elsewhere. */
async function diagnoseEnrichment(
  { storage }: DiagnoseParts,
  { bucket, region, account, enrich }: BucketRecord,
  signal?: AbortSignal,
): Promise<readonly Finding[]> {
  if (enrich === 'none') return [];
  const at = { bucket, region, account };
  try {
    const key = await storage.firstKey(at, signal).catch(() => undefined);
    signal?.throwIfAborted();
    if (key === undefined) return [];
    await storage.readVersion(at, { key }, signal);
    if (enrich === 'tags') await storage.readTags(at, { key }, signal);
    return [];
  } catch (error) {
    signal?.throwIfAborted();
    const { code, reason } = faultOf(error);
    if (code !== 'object.denied') return [];
    const why = 'searches by tags and metadata miss objects. Once S3 answers, a re-index fills it in';
    return [degraded(NOT_ENRICHED, `S3 refuses the requests that enrich ${bucket}: ${reason}`, why, adviceAbout(code, bucket))];
  }
}

/** What an apply would make now. */
function notMade({ spec: { bucket }, changes, foreign }: Plan): readonly Finding[] {
  if (changes.length === 0) return [];
  const parts = changes.map(({ part, name, action }) => `${part} ${name} (${action === 'change' ? 'changed' : 'missing'})`).join(', ');
  const isSafe = changes.every(({ isOfLetters }) => isOfLetters === true);
  const what = `what sends the events of ${bucket} to the bucket queue is not as it must be: ${parts}`;
  const why = isSafe ? 'events that cannot be delivered are lost' : 'until an apply makes it, not all events arrive';
  // a person must have seen what an apply touches of others, and only a plan shows that
  const fix = `tally bucket add ${bucket}${foreign.length === 0 ? '' : ' --plan'}`;
  return [(isSafe ? degraded : broken)('connect.not-made', what, why, fix)];
}

/** The watch takes away what is left of an earlier source before it checks: what is found then, it may not. */
async function leftFindings(state: StateStore, bucket: string, signal?: AbortSignal): Promise<readonly Finding[]> {
  if ((await settledEarlier(state, bucket, signal)) === undefined) return [];
  const what = `what ${bucket} had in AWS before its change is still there`;
  const why = 'its events may come twice. A process with the permissions of `tally iam-policy --for connecting` removes it';
  return [degraded('connect.earlier-left', what, why, `tally bucket add ${bucket}`)];
}

function only(findings: readonly Finding[]): Diagnosed {
  return { findings, passesBoth: false };
}

/** Parts that a removal or a pause takes away are missing rightfully. */
function changingFindings(connection: Connection): readonly Finding[] {
  if (connection.state === 'removing') return [removingFinding(connection)];
  return connection.state === 'paused' ? [pausedFinding(connection)] : [];
}

function pausedFinding({ bucket, changedAtMs }: Connection): Finding {
  const what = `the notification of ${bucket} is paused since ${new Date(changedAtMs).toISOString()}`;
  return degraded('connect.paused', what, 'no events arrive until you resume it', `tally bucket resume ${bucket}`);
}

function removingFinding({ bucket }: Connection): Finding {
  const what = `the removal of ${bucket} has not finished`;
  return broken('connect.removing', what, 'the parts that send its events may already be gone', `tally bucket remove ${bucket}`);
}

/** A read that failed says nothing about the connection. */
function unreadFinding(bucket: string, error: unknown): Finding {
  const isKnown = error instanceof RequestError || error instanceof FaultError;
  const isQueueMissing = isKnown && error.code === 'connect.queue-missing';
  const reason = error instanceof RequestError ? error.message : faultOf(error).reason;
  return {
    code: isKnown ? error.code : 'internal.unexpected',
    severity: isQueueMissing ? 'broken' : 'unknown',
    what: isQueueMissing ? reason : `the connection of ${bucket} could not be read: ${reason}`,
    why: isQueueMissing ? 'events are lost until the queue exists again' : 'it is unknown whether events arrive',
    fix: remedyOf(bucket, error),
    blocks: true,
  };
}

/** Suggest another look only for what may pass; deleted things don't come back. */
function remedyOf(bucket: string, error: unknown): string {
  if (error instanceof RequestError && error.code === 'connect.denied') return 'tally iam-policy --for daemon';
  if (error instanceof RequestError && error.code === 'connect.queue-missing')
    return `${error.extra['create']} && tally bucket add ${bucket}`;
  if (error instanceof FaultError && error.code === 'bucket.missing') return `tally bucket remove ${bucket}`;
  return `tally doctor ${bucket}`;
}
