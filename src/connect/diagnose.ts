/** Finds what is wrong with a bucket's connection. It only reads, and a failed read is a finding too. */
import type { BucketRecord, Connection } from '../records/bucket.ts';
import { defined } from '../base/defined.ts';
import { adviceAbout, FaultError, faultOf, type FaultCode } from '../base/fault.ts';
import { RequestError } from '../base/request-error.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import { requireBucket } from '../observing/buckets.ts';
import { FUTURE_MS } from '../ordering/constants.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import { settledEarlier } from './apply.ts';
import { broken, CLOCK_SKEW, degraded, differenceText, NOT_ENRICHED, unprovenFindings, type Finding } from './finding.rules.ts';
import { passesBoth } from './notification.rules.ts';
import type { ConnectionRequest, Plan } from './plan.rules.ts';
import { probeFindings } from './probe.ts';
import { requested, type ConnectionParts } from './requested.ts';
import { queueIn } from './sources/look.ts';
import { diff, type LookAt } from './sources/sources.ts';
import type { CheckConnection } from './watch.ts';

interface DiagnoseParts extends ConnectionParts {
  readonly lookAt: LookAt;
}

/** An object for which S3 refuses what enrichment reads, and why. */
export interface Refused {
  readonly key: string;
  readonly reason: string;
}

export interface Diagnosed {
  readonly findings: readonly Finding[];
  /** The notification configuration sends every created and removed event to the bucket's topic or queue. */
  readonly passesBoth: boolean;
  /** S3 refuses what enrichment reads. */
  readonly refused?: Refused;
  /** What enrichment reads could be read, for the object that S3 had refused too. */
  readonly isReadable?: boolean;
}

interface DoctorParts extends WithPorts<'state' | 'clock'> {
  readonly checkConnection: CheckConnection;
  readonly storage: Pick<ObjectStorage, 'firstKey' | 'versioningOf'>;
}

/** The doctor's report on a connected bucket: the check's findings, whether Tally can list the bucket, whether the clocks agree, and which events have not arrived yet. */
export async function doctor(parts: DoctorParts, bucket: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const { state, clock, checkConnection } = parts;
  const before = await requireBucket(state, bucket, signal);
  const checked = await checkConnection(before, signal);
  const unlisted = (await listingFindings(parts, before, signal)).filter(({ code }) => checked.every((found) => found.code !== code));
  const clocks = await clockFindings(parts, before, signal);
  // read again, because the check may have proven it
  return [...checked, ...unlisted, ...clocks, ...unprovenFindings(await requireBucket(state, bucket, signal), clock.nowMs())];
}

/** Faults that do not end by themselves. */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['object.denied', 'bucket.denied', 'bucket.missing']);

/** Events can arrive although the listing that repairs the index is denied. The watch does not ask, because a LIST costs twelve times as much as another read. */
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

/**
 * Finds that S3's clock and this process's differ by more than ordering tolerates. It measures now, because the stored value may predate a
 * correction of a clock. Slow answers are less precise, so it compares both ends.
 */
async function clockFindings(
  { storage, clock }: DoctorParts,
  { bucket, region, account }: BucketRecord,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const sentAtMs = clock.nowMs();
  // another check finds that S3 does not answer
  const versioning = await storage.versioningOf({ bucket, region, account }, signal).catch(() => undefined);
  signal.throwIfAborted();
  if (versioning === undefined || versioning.status === 'unknown') return [];
  const aheadMs = versioning.observedAtMs - clock.nowMs();
  const behindMs = sentAtMs - versioning.observedAtMs;
  if (Math.max(aheadMs, behindMs) <= FUTURE_MS) return [];
  const what = `S3's clock, by which ${bucket} is compared, is ${differenceText(aheadMs > behindMs ? aheadMs : -behindMs)} this process's clock`;
  const why =
    'a re-index closes a gap only if it began after the gap by both clocks, so gaps wait until the clocks agree. Fix the clock that is wrong';
  return [degraded(CLOCK_SKEW, what, why, 'timedatectl status')];
}

/** Finds what is wrong with a bucket's connection. `refusedKey`: an object for which S3 has refused enrichment. Throws only `connect.embedded`. */
export async function diagnose(parts: DiagnoseParts, record: BucketRecord, signal?: AbortSignal, refusedKey?: string): Promise<Diagnosed> {
  try {
    const connection = await diagnoseConnection(parts, record, signal);
    const enrichment = await readEnrichment(parts, record, refusedKey, signal);
    const { refused } = enrichment;
    if (refused === undefined) return { ...connection, ...enrichment };
    const why = 'searches by tags and metadata miss objects. Once S3 answers, a re-index fills it in';
    const found = degraded(NOT_ENRICHED, refused.reason, why, adviceAbout('object.denied', record.bucket));
    return { ...connection, ...enrichment, findings: [...connection.findings, found] };
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof RequestError && error.code === 'connect.embedded') throw error;
    return only([unreadFinding(record.bucket, error)]);
  }
}

async function diagnoseConnection(parts: DiagnoseParts, record: BucketRecord, signal: AbortSignal | undefined): Promise<Diagnosed> {
  const { state, lookAt } = parts;
  const { bucket, provenAtMs, connection } = record;
  const rightful = connection === undefined ? [] : changingFindings(connection);
  if (rightful.length > 0) return only(rightful);
  const { spec } = await requested(parts, askedOf(record), signal, connection?.queueArn);
  const look = await lookAt(spec, signal);
  const plan = diff(look);
  if (connection === undefined) return only([...plan.findings, ...(provenAtMs === undefined ? notMade(plan) : [])]);
  const { notification } = look.observed;
  return {
    findings: [
      ...notMade(plan),
      ...plan.findings,
      ...(await probeFindings(parts, spec, queueIn(look.observed, spec.queueArn))),
      ...(await leftFindings(state, bucket, signal)),
    ],
    passesBoth: notification.ok && passesBoth(spec, notification.configuration),
  };
}

/** The request that describes the bucket's connection. If Tally made nothing but its events arrive, a person must have wired it. */
function askedOf({ bucket, provenAtMs, connection }: BucketRecord): ConnectionRequest {
  if (connection === undefined) return { bucket, ...(provenAtMs !== undefined && { wired_by_hand: true }) };
  const { source, topicArn, enrich, bucketAccount, byHand } = connection;
  return { bucket, source, enrich, bucket_account: bucketAccount, wired_by_hand: byHand === true, ...defined({ topic_arn: topicArn }) };
}

/** For how long a refusal counts whose object is gone, which shows nothing. */
const GONE_MS = 3_600_000;

/**
 * Reads what enrichment reads, for the objects that S3 refused, because a policy may deny only a part of the bucket; else for the first
 * one. Other checks find that S3 does not answer or that the bucket cannot be listed.
 */
async function readEnrichment(
  parts: DiagnoseParts,
  record: BucketRecord,
  refusedKey: string | undefined,
  signal?: AbortSignal,
): Promise<Pick<Diagnosed, 'refused' | 'isReadable'>> {
  if (record.enrich === 'none') return { isReadable: true };
  const { unread } = record.connectionCheck ?? {};
  const found = new Set<Reading>();
  const suspects = new Set([unread?.key, refusedKey].filter((key) => key !== undefined));
  for (const key of suspects.size > 0 ? suspects : await firstKeyOf(parts, record, signal)) {
    const each = await readObject(parts, record, key, signal);
    if (typeof each === 'object') return { refused: each };
    found.add(each);
  }
  const isOver = unread !== undefined && parts.clock.nowMs() - unread.sinceMs >= GONE_MS;
  return { isReadable: !found.has('unanswered') && (isOver || found.has('read')) };
}

async function firstKeyOf({ storage }: DiagnoseParts, { bucket, region, account }: BucketRecord, signal?: AbortSignal) {
  const key = await storage.firstKey({ bucket, region, account }, signal).catch(() => undefined);
  signal?.throwIfAborted();
  return key === undefined ? [] : [key];
}

type Reading = 'read' | 'gone' | 'unanswered';

/** Reads for one object what enrichment reads. */
async function readObject(
  { storage }: DiagnoseParts,
  { bucket, region, account, enrich }: BucketRecord,
  key: string,
  signal?: AbortSignal,
): Promise<Refused | Reading> {
  const at = { bucket, region, account };
  try {
    const head = await storage.readVersion(at, { key }, signal);
    const tags = head === 'gone' || enrich !== 'tags' ? head : await storage.readTags(at, { key }, signal);
    return tags === 'gone' ? 'gone' : 'read';
  } catch (error) {
    signal?.throwIfAborted();
    const { code, reason } = faultOf(error);
    return code === 'object.denied' ? { key, reason: `S3 refuses the requests that enrich ${bucket}: ${reason}` } : 'unanswered';
  }
}

/** The finding for what an apply would make now. */
function notMade({ spec: { bucket }, changes, foreign }: Plan): readonly Finding[] {
  if (changes.length === 0) return [];
  const parts = changes.map(({ part, name, action }) => `${part} ${name} (${action === 'change' ? 'changed' : 'missing'})`).join(', ');
  const isSafe = changes.every(({ isOfLetters }) => isOfLetters === true);
  const what = `parts that send ${bucket}'s events to the bucket queue are missing or changed: ${parts}`;
  const why = isSafe ? 'events that cannot be delivered are lost' : 'until you apply the plan, not all events arrive';
  // a person must see what an apply touches of other owners, and only a plan shows that
  const fix = `tally bucket add ${bucket}${foreign.length === 0 ? '' : ' --plan'}`;
  return [(isSafe ? degraded : broken)('connect.not-made', what, why, fix)];
}

/** The watch removes what remains of an earlier source before it checks, so whatever is found now, it may not remove. */
async function leftFindings(state: StateStore, bucket: string, signal?: AbortSignal): Promise<readonly Finding[]> {
  if ((await settledEarlier(state, bucket, signal)) === undefined) return [];
  const what = `the parts of ${bucket}'s earlier connection are still in AWS`;
  const why = 'its events may come twice. A process with the permissions of `tally iam-policy --for connecting` removes it';
  return [degraded('connect.earlier-left', what, why, `tally bucket add ${bucket}`)];
}

function only(findings: readonly Finding[]): Diagnosed {
  return { findings, passesBoth: false };
}

/** During a removal or a pause, missing parts are no defect. */
function changingFindings({ bucket, state, changedAtMs }: Connection): readonly Finding[] {
  if (state === 'removing') {
    const what = `the removal of ${bucket} has not finished`;
    return [broken('connect.removing', what, 'the parts that send its events may already be gone', `tally bucket remove ${bucket}`)];
  }
  if (state !== 'paused') return [];
  const what = `${bucket}'s notification has been paused since ${new Date(changedAtMs).toISOString()}`;
  return [degraded('connect.paused', what, 'no events arrive until you resume it', `tally bucket resume ${bucket}`)];
}

/** A failed read says nothing about the connection itself. */
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

/** Suggests another look only for transient failures; deleted things don't come back. */
function remedyOf(bucket: string, error: unknown): string {
  if (error instanceof RequestError && error.code === 'connect.denied') return 'tally iam-policy --for daemon';
  if (error instanceof RequestError && error.code === 'connect.queue-missing')
    return `${error.extra['create']} && tally bucket add ${bucket}`;
  if (error instanceof FaultError && error.code === 'bucket.missing') return `tally bucket remove ${bucket}`;
  return `tally doctor ${bucket}`;
}
