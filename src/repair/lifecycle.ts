/**
 * What buckets' lifecycle rules mean for the index. Expirations are followed for sources that send no events for them. Once a day, Tally checks objects that should have expired
 * until S3 has deleted them, which may be days late: a few objects one by one, those with a known expiration time first, then those of
 * each rule. If there are too many, the bucket gets a gap, and a re-index finds them.
 */
import { reportsExpirations, type BucketRecord } from '../records/bucket.ts';
import { expiredUntilMs, expiringRules, headsWorthIt, mayHaveTags, type LifecycleRule } from '../aws/lifecycle.rules.ts';
import { type ObjectDocument, clockOfMs } from '../ordering/document.ts';
import { faultOf } from '../base/fault.ts';
import { MARGIN_MS } from '../ordering/constants.ts';
import { type Condition, type Test, holds } from '../store/conditions.rules.ts';
import { isAnyHeld, type GapReports } from '../observing/gaps.ts';
import type { ObjectIndex, ObjectMaintenance, ObjectScan, WithPorts, SumUsage } from '../store/store.ts';
import type { BucketLifecycle } from '../aws/storage.ts';
import { refs, updateRecord } from '../store/stored.ts';
import type { Observe } from '../observing/observer.ts';
import { observeAgain } from './sweeps.ts';
import { VISIT_MAX_MS, type Visit } from '../observing/sweep.ts';
import { defined } from '../base/defined.ts';
import type { Overdue } from '../records/comparison.ts';

const CHECK_INTERVAL_MS = 86_400_000;
/** How long a bucket waits after a failed check, so that an outage does not cause requests every minute. */
const RETRY_MS = 300_000;
const PAGE_DOCUMENTS = 100;
/** How many documents a check reads: at 50 ms a page they take less than a minute, so that later buckets soon get their turn. */
const DOCUMENTS_MAX = 100_000;

interface LifecycleDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly objects: Pick<ObjectIndex, 'search'>;
  readonly maintenance: Pick<ObjectMaintenance, 'expiring'>;
  readonly scan: Pick<ObjectScan, 'countLive'>;
  readonly lifecycle: Pick<BucketLifecycle, 'rulesOf'>;
  readonly observe: Observe;
  readonly gaps: Pick<GapReports, 'report'>;
}

/** A check of one bucket. */
interface Check {
  readonly bucket: BucketRecord;
  /** Documents with at least this clock have just been checked, by this check or for an event. */
  readonly freshClock: number;
  readonly signal: AbortSignal;
  readonly isOver: () => boolean;
  /** How many documents it may still read. */
  documentsLeft: number;
  /** How many objects it may still observe one by one. */
  headsLeft: number;
  /** How many it has observed so far. */
  observed: number;
}

/** A step of a check: the page of documents after a key, in key order. */
type Step = (after: string) => Promise<{ readonly documents: readonly ObjectDocument[]; readonly next?: string | undefined }>;

/** Creates the visit that checks a bucket once a day, except while deletions of the bucket wait for a person. */
export function createVisitLifecycle(dependencies: LifecycleDependencies): Visit {
  const { state, objects, maintenance, scan, lifecycle, observe, gaps, clock, telemetry } = dependencies;
  /** When a bucket may be checked again after a failure (monotonic). */
  const retryAtMs = new Map<string, number>();

  return async function visitLifecycle(record, signal) {
    // the check might delete documents about which a person has yet to decide
    if (!isDue(record) || (await isAnyHeld(state, record))) return undefined;
    try {
      return await checkBucket(record, signal);
    } catch (error) {
      // a run that was stopped says nothing about the bucket
      if (!signal.aborted) retryAtMs.set(record.bucket, clock.monotonicMs() + RETRY_MS);
      throw error;
    }
  };

  /** Resolves with how many objects it observed. */
  async function checkBucket(record: BucketRecord, signal: AbortSignal): Promise<number> {
    const { bucket } = record;
    const rules = await rulesOf(record, signal);
    const expiring = expiringRules(rules ?? []);
    const check = checkOf(record, headsWorthIt(await scan.countLive(bucket, '', signal)), signal);
    for (const step of [datedStep(check), ...expiring.map((rule) => ruleStep(check, rule))]) {
      if (await follow(check, step)) continue;
      await gaps.report({ bucket, kind: 'lifecycle', reason: TOO_MANY, seenAtMs: clock.nowMs() });
      break;
    }
    const found = { checkedAtMs: clock.nowMs(), rules: rules === undefined ? 'unknown' : 'known', expiring: expiring.length } as const;
    await updateRecord(state, refs.bucket(bucket), (current) => current && { ...current, lifecycle: found });
    return check.observed;
  }

  function checkOf(bucket: BucketRecord, headsLeft: number, signal: AbortSignal): Check {
    const untilMs = clock.monotonicMs() + VISIT_MAX_MS;
    // a check writes at D − M; the second M allows for its duration and for the difference between this machine's clock and S3's
    const freshClock = clockOfMs(clock.nowMs() - 2 * MARGIN_MS);
    const isOver = (): boolean => signal.aborted || clock.monotonicMs() >= untilMs;
    return { bucket, freshClock, signal, isOver, documentsLeft: DOCUMENTS_MAX, headsLeft, observed: 0 };
  }

  function isDue({ bucket, source, lifecycle: last }: BucketRecord): boolean {
    if (reportsExpirations(source) || (retryAtMs.get(bucket) ?? 0) > clock.monotonicMs()) return false;
    return last === undefined || Math.abs(clock.nowMs() - last.checkedAtMs) >= CHECK_INTERVAL_MS;
  }

  /** The bucket's lifecycle rules; undefined if S3 denies reading them. */
  async function rulesOf(bucket: BucketRecord, signal: AbortSignal): Promise<readonly LifecycleRule[] | undefined> {
    try {
      return await lifecycle.rulesOf(bucket, signal);
    } catch (error) {
      if (faultOf(error).code !== 'lifecycle.denied') throw error;
      telemetry.requestFailed('read the lifecycle rules of a bucket', error);
      return undefined;
    }
  }

  /** Documents with a known expiration time. */
  function datedStep(check: Check): Step {
    const beforeMs = clock.nowMs();
    return async (after) => {
      const documents = await maintenance.expiring(check.bucket.bucket, { beforeMs, after, limit: PAGE_DOCUMENTS }, check.signal);
      return { documents, next: nextOf(documents) };
    };
  }

  /** Documents old enough to expire under the rule. Those with a past expiration time belong to the first step. */
  function ruleStep(check: Check, rule: LifecycleRule): Step {
    const nowMs = clock.nowMs();
    const modifiedUntilMs = expiredUntilMs(rule, nowMs);
    const { prefix } = rule;
    return async (after) => {
      // nothing can have expired yet
      if (modifiedUntilMs === undefined) return { documents: [] };
      const { bucket } = check.bucket;
      const position = after === '' ? {} : { after: { bucket, key: after } };
      const where = [mayBeOf(rule, modifiedUntilMs)];
      const found = await objects.search({ bucket, prefix, where, ...position, limit: PAGE_DOCUMENTS }, check.signal);
      const isOpen = (document: ObjectDocument): boolean =>
        document.clock < check.freshClock && mayHaveTags(rule, document) && !isPast(document.expires_at, nowMs);
      return { documents: found.filter(isOpen), next: nextOf(found) };
    };
  }

  /** Checks page after page. Resolves to false if it could not check all, because listing is cheaper or the check has reached its limit. */
  async function follow(check: Check, pages: Step): Promise<boolean> {
    for (let after: string | undefined = ''; after !== undefined;) {
      check.signal.throwIfAborted();
      if (check.isOver() || check.documentsLeft <= 0) return false;
      const { documents, next } = await pages(after);
      check.documentsLeft -= PAGE_DOCUMENTS;
      if (documents.length > check.headsLeft) return false;
      const count = await observeAgain(observe, check.bucket, documents, check.isOver);
      check.headsLeft -= count;
      check.observed += count;
      if (count < documents.length) return false;
      after = next;
    }
    return true;
  }
}

function nextOf(documents: readonly ObjectDocument[]): string | undefined {
  return documents.length < PAGE_DOCUMENTS ? undefined : documents.at(-1)?.key;
}

/** A condition that excludes documents known to be too young for the rule, or of a size to which it does not apply. */
function mayBeOf({ sizeAbove, sizeBelow }: LifecycleRule, modifiedUntilMs: number): Condition {
  const tests: Test[] = [{ kind: 'modified', from: modifiedUntilMs + 1 }];
  if (sizeAbove !== undefined) tests.push({ kind: 'size', max: sizeAbove });
  if (sizeBelow !== undefined) tests.push({ kind: 'size', min: sizeBelow });
  return { anyOf: tests, negated: true };
}

const TOO_MANY = 'more objects should have expired than can be checked one by one';

function isPast(text: string | undefined, nowMs: number): boolean {
  return text !== undefined && Date.parse(text) < nowMs;
}

interface OverdueParts extends WithPorts<'clock' | 'telemetry'> {
  readonly usage: SumUsage;
  readonly lifecycle: BucketLifecycle;
}

export type LookForOverdue = (bucket: BucketRecord) => Promise<Overdue>;

/** S3 deletes what has expired within a day or two. */
const LATE_MS = 3 * 86_400_000;
/** Of one sum. The job that has compared the bucket waits for it. */
const SUM_MAX_MS = 10_000;
/** A bucket may have a thousand rules. */
const RULES_MAX = 20;

/**
 * Whether the bucket's lifecycle rules did what they say. This runs after a comparison of the whole bucket: the index then equals the bucket,
 * so one sum per rule shows what should have expired. What may not be read, or is not answered, is left out: a comparison never fails for it.
 */
export async function lookForOverdue({ usage, lifecycle, clock, telemetry }: OverdueParts, bucket: BucketRecord): Promise<Overdue> {
  const nowMs = clock.nowMs();

  async function mostOf(rule: LifecycleRule): Promise<NonNullable<Overdue['expired']>> {
    const untilMs = expiredUntilMs(rule, nowMs - LATE_MS);
    const { id, prefix } = rule;
    const named = { rule: id === '' ? `of ${prefix === '' ? 'all keys' : prefix}` : id };
    if (untilMs === undefined) return { ...named, objects: 0, bytes: 0 };
    const filter = { bucket: bucket.bucket, prefix, where: isOf(rule, untilMs) };
    const sums = await usage({ ...filter, by: [], nowMs, limit: 1, timeLimitMs: SUM_MAX_MS });
    return sums === 'too-slow' ? { ...named, objects: 0, bytes: 0 } : { ...named, objects: sums.objects, bytes: sums.bytes };
  }

  async function expired(): Promise<Overdue['expired']> {
    const sums = [];
    for (const rule of expiringRules(await lifecycle.rulesOf(bucket)).slice(0, RULES_MAX)) sums.push(await mostOf(rule));
    const [most] = sums.toSorted((a, b) => b.objects - a.objects);
    return most?.objects === 0 ? undefined : most;
  }

  /** Undefined instead of a failure. A permission that is missing is no failure. */
  async function known<Found>(what: string, ask: () => Promise<Found>): Promise<Found | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (faultOf(error).code !== 'lifecycle.denied') telemetry.requestFailed(what, error);
      return undefined;
    }
  }

  return defined({
    expired: await known('sum what should have expired', expired),
    uploads: await known('list unfinished uploads', () => lifecycle.uploadsOf(bucket)),
  });
}

/** What is certain to be of the rule. Of a document without tags it is not known whether it has those of the rule. */
function isOf({ tags, sizeAbove, sizeBelow }: LifecycleRule, untilMs: number): readonly Condition[] {
  return [
    holds({ kind: 'modified', before: untilMs + 1 }),
    ...(sizeAbove === undefined ? [] : [holds({ kind: 'size', min: sizeAbove + 1 })]),
    ...(sizeBelow === undefined ? [] : [holds({ kind: 'size', max: sizeBelow - 1 })]),
    ...Object.entries(tags).map(([name, value]) => holds({ kind: 'tag', name, value })),
  ];
}
