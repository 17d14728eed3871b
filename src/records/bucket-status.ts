/**
 * A bucket's one status: how far its index can be relied on, from everything known. The list, the API, the panel, `explain` and the
 * metrics all show this status, so that a bucket is never healthy in one place and broken in another. `ok` means: its events are known
 * to arrive, the whole bucket was compared, and nothing is known to differ.
 */
import { circuitOf, isFaultCode, type FaultCircuit } from '../base/fault.ts';
import { countText, momentText } from '../base/texts.ts';
import { compareEveryMs, type BucketRecord } from './bucket.ts';
import { expiredText } from './comparison.ts';
import { dueAtMs, isHeld, nextOf, whyOf, type Differences, type DirtyMark } from './dirty.ts';
import { countOf, outermost } from './waiting-deletes.ts';
import type { Trouble } from './receiving.ts';

/** The worst first: a bucket is in the first state that applies. */
export const bucketStates = [
  /** Events are being lost: something on their path in AWS is missing. */
  'events_lost',
  /** Its notification was removed on request. */
  'paused',
  /** S3 or the index does not answer for it, or no worker receives its events. */
  'waiting',
  /** A job held deletions back, and a person must decide. */
  'deletions_held',
  /** A report or explain found differences, a person declined deletions, the index refuses documents, or S3 refuses what enrichment reads. */
  'differs',
  /** No event has arrived through its connection since the connection last changed. */
  'events_unproven',
  /** The whole bucket has never been compared. */
  'never_compared',
  /** Changes may be missing. */
  'gap_open',
  /** The last full comparison is older than two intervals. */
  'overdue',
  /** Events arrive, but not all that could, or not securely. */
  'degraded',
  /** Its connection could not be read. */
  'unchecked',
  'ok',
] as const;
export type BucketState = (typeof bucketStates)[number];

/** `bad`: the index differs, or will with the next change. `warning`: it may differ, or may soon. */
export const bucketSeverities = ['bad', 'warning', 'ok'] as const;
export type BucketSeverity = (typeof bucketSeverities)[number];

/** What a person does about it. */
export const bucketActs = ['doctor', 'plan', 'resume', 'remove', 'reindex', 'jobs'] as const;
export type BucketAct = (typeof bucketActs)[number];

export interface BucketStatus {
  readonly state: BucketState;
  readonly severity: BucketSeverity;
  /** One sentence without its full stop. */
  readonly sentence: string;
  /** Since when the bucket has been in this state; absent if that is unknown, or the state is `ok`. */
  readonly sinceMs?: number;
  /** Absent if nothing need be done, or Tally does it by itself. */
  readonly act?: BucketAct;
  /** The job that the act is about. */
  readonly jobId?: string;
  /** How many objects the sentence says differ; absent if none do, or the number is unknown. */
  readonly differing?: number;
  /** How many gaps it has. */
  readonly gaps: number;
}

export interface StatusFacts {
  readonly record: BucketRecord;
  /** What its events wait for. */
  readonly waitsFor: Trouble | undefined;
  /** Why its documents are written without their enrichment. */
  readonly unread: Trouble | undefined;
  readonly gaps: readonly DirtyMark[];
  readonly nowMs: number;
  /** How often the whole bucket is compared by schedule; 0: never. */
  readonly compareIntervalMs: number;
}

/** A due comparison may have to wait for its turn, or for a bucket that refuses requests, so only this many intervals count as overdue. */
const OVERDUE_INTERVALS = 2;

type Rule = (facts: StatusFacts) => Omit<BucketStatus, 'severity' | 'gaps'> | undefined;

/** The status of the bucket. */
export function bucketStatus(facts: StatusFacts): BucketStatus {
  const gaps = facts.gaps.length;
  for (const rule of rules) {
    const found = rule(facts);
    if (found !== undefined) return { ...found, severity: severityOf(found.state), gaps };
  }
  const { record, nowMs } = facts;
  const compared = record.lastComparedAtMs === undefined ? '' : `; compared ${ageText(nowMs - record.lastComparedAtMs)} ago`;
  const isLossy = record.source === 'webhook' && facts.compareIntervalMs > 0;
  const lossy = isLossy ? '; events of this source can be lost, so it is compared daily' : '';
  const expired = record.overdue?.expired === undefined ? '' : `; ${expiredText(record.overdue.expired)}`;
  return { state: 'ok', severity: 'ok', sentence: `No known difference${compared}${lossy}${expired}`, gaps };
}

/**
 * The status as shown to readers of a part of the bucket. The administrators' sentence, time and act may name keys, other buckets and
 * parts of AWS that such readers may not see.
 */
export function statusForReaders({ state, severity, gaps }: BucketStatus): BucketStatus {
  return { state, severity, sentence: readerSentences[state], gaps };
}

const readerSentences: Readonly<Record<BucketState, string>> = {
  events_lost: 'Its events do not arrive, so changes are missing',
  paused: 'Its notification is paused, so no event arrives',
  waiting: 'Its events are waiting, so the newest changes are missing',
  deletions_held: 'Searches may find objects that are already deleted',
  differs: 'Part of it is known to differ from S3',
  events_unproven: 'It is not yet known whether its events arrive',
  never_compared: 'It has never been fully compared with S3',
  gap_open: 'Changes may be missing',
  overdue: 'It has not been fully compared with S3 for a long time',
  degraded: 'Its connection is degraded',
  unchecked: 'Its connection could not be checked',
  ok: 'No known difference',
};

function severityOf(state: BucketState): BucketSeverity {
  switch (state) {
    case 'events_lost':
    case 'paused':
    case 'waiting':
    case 'deletions_held':
    case 'differs':
    case 'events_unproven':
      return 'bad';
    case 'never_compared':
    case 'gap_open':
    case 'overdue':
    case 'degraded':
    case 'unchecked':
      return 'warning';
    case 'ok':
      return 'ok';
  }
}

/** The command for the act. */
export function commandOfAct(act: BucketAct, bucket: string, jobId?: string): string {
  switch (act) {
    case 'doctor':
      return `tally doctor ${bucket}`;
    case 'plan':
      return `tally bucket add ${bucket} --plan`;
    case 'resume':
      return `tally bucket resume ${bucket}`;
    case 'remove':
      return `tally bucket remove ${bucket}`;
    case 'reindex':
      return `tally reindex ${bucket}`;
    case 'jobs':
      return jobId === undefined ? `tally jobs --bucket ${bucket}` : `tally jobs ${jobId}`;
  }
}

/** In the order of `bucketStates`. */
const rules: readonly Rule[] = [
  ({ waitsFor }) =>
    waitsFor?.code === 'queue.missing'
      ? { state: 'events_lost', sentence: `Its events are being lost: ${waitsFor.reason}`, sinceMs: waitsFor.sinceMs, act: 'doctor' }
      : undefined,
  ({ record: { connection } }) =>
    connection?.state === 'removing'
      ? {
          state: 'events_lost',
          sentence: 'Its removal has not finished, so its events may be lost',
          sinceMs: connection.changedAtMs,
          act: 'remove',
        }
      : undefined,
  ({ record: { connection, connectionCheck: check, provenAtMs } }) =>
    check?.brokenSinceMs === undefined || connection?.state === 'paused' || provenAtMs === undefined
      ? undefined
      : { state: 'events_lost', sentence: `Its events are being lost${whatOf(check)}`, sinceMs: check.brokenSinceMs, act: 'doctor' },
  ({ record: { connection } }) =>
    connection?.state === 'paused'
      ? { state: 'paused', sentence: 'Its notification is paused, so no event arrives', sinceMs: connection.changedAtMs, act: 'resume' }
      : undefined,
  missingRule,
  waitingRule,
  heldRule,
  declinedRule,
  differsRule,
  ({ record: { refused } }) =>
    refused && {
      state: 'differs',
      sentence: `${countText(refused.count, 'object')} cannot be found, because the index refuses ${refused.count === 1 ? 'its document' : 'their documents'}`,
      sinceMs: refused.atMs,
      act: 'jobs',
      jobId: refused.jobId,
      differing: refused.count,
    },
  unreadRule,
  unprovenRule,
  neverComparedRule,
  gapRule,
  overdueRule,
  ({ record: { connectionCheck: check } }) =>
    check?.state === 'degraded'
      ? { state: 'degraded', sentence: `Its connection is degraded${whatOf(check)}`, sinceMs: check.sinceMs, act: 'doctor' }
      : undefined,
  ({ record: { connectionCheck: check } }) =>
    check?.state === 'unknown'
      ? { state: 'unchecked', sentence: `Its connection could not be checked${whatOf(check)}`, sinceMs: check.sinceMs, act: 'doctor' }
      : undefined,
];

/** Its events, or one of its jobs, found no such bucket. One in another region does not count, because the record names a region. */
function missingRule({ record: { bucket, region }, waitsFor, gaps }: StatusFacts): ReturnType<Rule> {
  const met = gaps.find(({ stuck = '', waits }) => `${stuck} ${waits?.why ?? ''}`.includes('bucket.missing: '));
  const sinceMs = waitsFor?.code === 'bucket.missing' ? waitsFor.sinceMs : met?.sinceMs;
  return sinceMs === undefined
    ? undefined
    : { state: 'waiting', sentence: `S3 has no bucket ${bucket} in ${region}: disconnect it, or create it again`, sinceMs, act: 'remove' };
}

/** The doctor looks at S3 and AWS, so it is no act while the index is the cause. */
function waitingRule({ waitsFor }: StatusFacts): ReturnType<Rule> {
  if (waitsFor === undefined) return undefined;
  const { code, reason, sinceMs } = waitsFor;
  const isOfIndex = isFaultCode(code) && INDEX_CIRCUITS.has(circuitOf(code));
  return { state: 'waiting', sentence: `Its events are waiting: ${code}: ${reason}`, sinceMs, ...(!isOfIndex && { act: 'doctor' }) };
}

const INDEX_CIRCUITS: ReadonlySet<FaultCircuit> = new Set(['cluster', 'index']);

function heldRule({ record: { waiting = [] } }: StatusFacts): ReturnType<Rule> {
  const asked = waiting.filter(({ count, declinedAtMs }) => count !== undefined && declinedAtMs === undefined);
  const [first] = outermost(asked);
  if (first === undefined) return undefined;
  const { jobId } = first;
  const count = countOf(asked);
  const next = jobId === undefined ? 'a re-index counts them again and asks you' : 'look at the bucket, then allow or decline them';
  return {
    state: 'deletions_held',
    sentence: `${countText(count, 'deletion')} ${count === 1 ? 'waits' : 'wait'} for you: ${next}`,
    sinceMs: Math.min(...asked.map(({ sinceMs }) => sinceMs)),
    ...(jobId === undefined ? { act: 'reindex' } : { act: 'jobs', jobId }),
    differing: count,
  };
}

/**
 * Declined deletions are still held, but the job that held them has nothing more to ask. Where a job was only stopped before it counted
 * any, nothing is known to differ.
 */
function declinedRule({ record: { waiting = [] } }: StatusFacts): ReturnType<Rule> {
  const declined = waiting.filter(({ count }) => count !== undefined);
  if (declined.length === 0) return undefined;
  const count = countOf(declined);
  return {
    state: 'differs',
    sentence: `${areText(count)} not in S3, because you declined to delete ${count === 1 ? 'its document' : 'their documents'}: the next comparison asks you again`,
    sinceMs: Math.min(...declined.map(({ sinceMs }) => sinceMs)),
    act: 'reindex',
    differing: count,
  };
}

type Found = Differences & { readonly mark: DirtyMark; readonly differing: number };

/** What reports found. Reports about folders may overlap, so each stands alone; those about single keys don't, so they are added up. */
function differencesIn(gaps: readonly DirtyMark[]): readonly Found[] {
  const found = gaps.flatMap((mark) =>
    (mark.differences ?? []).map((each) => ({ ...each, mark, differing: each.missing + each.stale + each.phantom })),
  );
  const [first, ...others] = found.filter(({ mark }) => mark.prefix !== undefined);
  if (first === undefined) return found;
  const sum = (a: Found, b: Found): Found => ({
    ...a,
    missing: a.missing + b.missing,
    stale: a.stale + b.stale,
    phantom: a.phantom + b.phantom,
    differing: a.differing + b.differing,
  });
  return [...found.filter(({ mark }) => mark.prefix === undefined), others.reduce(sum, first)];
}

function differsRule({ gaps, nowMs }: StatusFacts): ReturnType<Rule> {
  const [found] = [...differencesIn(gaps)].toSorted((a, b) => b.differing - a.differing);
  if (found === undefined) return undefined;
  const { missing, stale, phantom, atMs, mark, differing } = found;
  const parts = [
    ...(missing > 0 ? [`${areText(missing)} missing`] : []),
    ...(stale > 0 ? [`${areText(stale)} outdated`] : []),
    ...(phantom > 0 ? [`${areText(phantom)} not in S3`] : []),
  ];
  return {
    state: 'differs',
    sentence: `${parts.join(', ')} as of ${momentText(atMs, nowMs)}: ${nextText(mark, nowMs)}`,
    sinceMs: atMs,
    differing,
    ...actOf(mark),
  };
}

/** Without their enrichment, searches by tags and metadata do not find all documents. */
function unreadRule({ unread, record: { connectionCheck: check, unenriched, enrich } }: StatusFacts): ReturnType<Rule> {
  if (enrich === 'none') return undefined;
  const lack = `what enrich ${enrich} asks for`;
  const found = check?.unread ?? unread;
  if (found !== undefined)
    return { state: 'differs', sentence: `Documents lack ${lack}: ${found.reason}`, sinceMs: found.sinceMs, act: 'doctor' };
  return (
    unenriched && {
      state: 'differs',
      sentence: `${countText(unenriched.count, 'document')} ${unenriched.count === 1 ? 'lacks' : 'lack'} ${lack}, because S3 refused it to the last re-index that filled it in`,
      sinceMs: unenriched.atMs,
      act: 'doctor',
    }
  );
}

function unprovenRule({ record, nowMs }: StatusFacts): ReturnType<Rule> {
  const { provenAtMs, createdAtMs, connectionCheck: check } = record;
  if (provenAtMs !== undefined) return undefined;
  const none = unprovenText(record, nowMs);
  const isMissing = check?.state === 'broken';
  return {
    state: 'events_unproven',
    sentence: `${none}${check === undefined ? '' : whatOf(check)}`,
    sinceMs: createdAtMs,
    act: isMissing ? 'plan' : 'doctor',
  };
}

/** Says what has not arrived yet through the bucket's present connection. */
export function unprovenText({ source, waySinceMs, lastEventAtMs, arrived = [] }: BucketRecord, nowMs: number): string {
  if (arrived.length > 0) {
    const missing = [...(arrived.includes('created') ? [] : ['a created object']), ...(arrived.includes('removed') ? [] : ['a deletion'])];
    return `Events have arrived, but none of ${missing.join(' or ')} yet`;
  }
  const by = lastEventAtMs === undefined ? '' : ` through its source ${source}`;
  const since = waySinceMs === undefined ? 'it was connected' : momentText(Math.min(waySinceMs, nowMs), nowMs);
  return `No event has arrived${by} since ${since}`;
}

function neverComparedRule({ record: { lastComparedAtMs, createdAtMs }, gaps, nowMs }: StatusFacts): ReturnType<Rule> {
  if (lastComparedAtMs !== undefined) return undefined;
  const whole = gaps.find(({ prefix }) => prefix === undefined);
  const isBegun = whole?.jobId !== undefined;
  return {
    state: 'never_compared',
    sentence: `${isBegun ? 'It is being compared for the first time' : 'It has never been fully compared'}${whole === undefined ? '' : `: ${nextText(whole, nowMs)}`}`,
    sinceMs: createdAtMs,
    ...(whole === undefined ? { act: 'reindex' } : actOf(whole)),
  };
}

function gapRule({ gaps, nowMs }: StatusFacts): ReturnType<Rule> {
  const [worst] = gaps.toSorted((a, b) => a.sinceMs - b.sinceMs);
  if (worst === undefined) return undefined;
  const others = gaps.length === 1 ? '' : `, and ${countText(gaps.length - 1, 'other gap')}`;
  return {
    state: 'gap_open',
    sentence: `Changes may be missing (${whyOf(worst)}${others}): ${nextText(worst, nowMs)}`,
    sinceMs: worst.sinceMs,
    ...actOf(worst),
  };
}

function overdueRule({ record, nowMs, compareIntervalMs }: StatusFacts): ReturnType<Rule> {
  const { lastComparedAtMs = 0 } = record;
  const [ageMs, everyMs] = [nowMs - lastComparedAtMs, compareEveryMs(record, compareIntervalMs)];
  if (everyMs === 0 || ageMs <= OVERDUE_INTERVALS * everyMs) return undefined;
  return { state: 'overdue', sentence: `It was last fully compared ${ageText(ageMs)} ago`, sinceMs: lastComparedAtMs, act: 'reindex' };
}

/** What a person can do about a gap; nothing while a job repairs it, or will begin by itself. */
function actOf(mark: DirtyMark): Pick<BucketStatus, 'act' | 'jobId'> {
  const { jobId, stuck, compared, refusedSinceMs, failures } = mark;
  if (jobId !== undefined) return stuck === undefined ? {} : { act: 'jobs', jobId };
  if (isHeld(mark)) return { act: 'reindex' };
  if (compared === true || refusedSinceMs !== undefined) return { act: 'doctor' };
  return failures > 0 ? { act: 'jobs' } : {};
}

/** What happens next to the gap, and how soon. */
function nextText(mark: DirtyMark, nowMs: number): string {
  const dueMs = dueAtMs(mark, nowMs);
  return Number.isFinite(dueMs) && dueMs > nowMs ? `${nextOf(mark, nowMs)} (in ${ageText(dueMs - nowMs)})` : nextOf(mark, nowMs);
}

function whatOf({ findings }: { readonly findings: readonly { readonly what: string }[] }): string {
  const [first] = findings;
  return first === undefined ? '' : `: ${first.what}`;
}

function areText(count: number): string {
  return `${countText(count, 'object')} ${count === 1 ? 'is' : 'are'}`;
}

const STEPS = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
] as const;

function ageText(ageMs: number): string {
  const [lengthMs, unit] = STEPS.find(([each]) => ageMs >= each) ?? [1_000, 'second'];
  return countText(Math.max(0, Math.floor(ageMs / lengthMs)), unit);
}
