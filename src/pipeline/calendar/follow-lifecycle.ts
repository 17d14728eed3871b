/**
 * Follows lifecycle expirations for sources that send no event for them. Once a day, objects that should have expired are
 * checked until S3 has deleted them, which may be days late: a few objects one by one, many by marking the bucket, which a re-index
 * repairs.
 *
 *   due ─► check begins ─► visits: documents with a time of expiration, then those of each rule ─► checked, due in a day
 *                            └─ a visit ends at its bound: the place is stored, and the next visit continues there
 */
import { defined } from '../../domain/defined.ts';
import { createHash } from 'node:crypto';
import { reportsExpirations, type BucketRecord } from '../../domain/bucket.ts';
import { expiredUntilMs, expiringRules, headsWorthIt, mayHaveTags, type LifecycleRule } from '../../domain/calendar/lifecycle-rules.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { faultOf } from '../../domain/fault.ts';
import { clockOfMs } from '../../domain/ordering/clock.ts';
import { MARGIN_MS } from '../../domain/ordering/constants.ts';
import { isAnyHeld } from '../gaps/stored-gaps.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { ObjectMaintenance, ObjectScan } from '../ports/object-index.ts';
import type { BucketLifecycle } from '../ports/storage.ts';
import { refs, updateRecord } from '../records/stored.ts';
import type { ObserveAgain } from './observe-again.ts';
import { VISIT_MAX_MS, type Visit } from './sweep.ts';
import type { WithPorts } from '../ports/ports.ts';

const CHECK_INTERVAL_MS = 86_400_000;
/** How long a bucket waits after a failed check, so that an outage does not cause requests every minute. */
const RETRY_MS = 900_000;
const PAGE_DOCUMENTS = 100;
/** Documents that one visit reads: at 50 ms a page they take less than a minute, so that later buckets soon have their turn. */
const VISIT_DOCUMENTS = 100_000;

interface LifecycleDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly maintenance: Pick<ObjectMaintenance, 'expiring' | 'aged'>;
  readonly scan: Pick<ObjectScan, 'countLive'>;
  readonly lifecycle: BucketLifecycle;
  readonly observeAgain: ObserveAgain;
  readonly gaps: Pick<GapReports, 'report'>;
}

/** Where a check is. */
type Place = NonNullable<BucketRecord['lifecycleCheck']>;

/** One visit of a check of one bucket. */
interface Check {
  readonly bucket: BucketRecord;
  /** Documents with a clock at or above this one were checked just now, by this check or for an event. */
  readonly freshClock: number;
  readonly signal: AbortSignal;
  /** Whether the visit has reached its bound. */
  readonly isOver: () => boolean;
  /** Where it is: the step, and the key after which the page begins that is being checked. */
  step: number;
  after: string;
  /** How many documents it may still read. */
  documentsLeft: number;
  /** How many objects the check may still observe one by one. */
  headsLeft: number;
  /** How many objects the visit has observed. */
  observed: number;
}

/** A step of a check: the page of documents after a key, in key order. */
type Step = (after: string) => Promise<{ readonly documents: readonly ObjectDocument[]; readonly next?: string | undefined }>;

/** Creates the visit of one bucket: the first visit begins a check of the bucket, and then one check a day begins. None runs while deletions of the bucket wait for a person. */
export function createVisitLifecycle(dependencies: LifecycleDependencies): Visit {
  const { state, maintenance, scan, lifecycle, observeAgain, gaps, clock, telemetry } = dependencies;
  /** When a bucket may be checked again after a failure (monotonic). */
  const retryAtMs = new Map<string, number>();

  return async function visitLifecycle(bucket, signal) {
    if (!isDue(bucket)) return undefined;
    // what is checked may be among the documents that a person decides about
    if (await isAnyHeld(state, bucket)) return undefined;
    retryAtMs.set(bucket.bucket, clock.monotonicMs() + RETRY_MS);
    const rules = await rulesOf(bucket, signal);
    const expiring = expiringRules(rules ?? []);
    const begun = await placeOf(bucket, expiring, signal);
    const check = checkOf(bucket, begun, signal);
    const steps = [datedStep(check), ...expiring.map((rule) => ruleStep(check, rule))];
    const stopped = await followFrom(check, begun, steps).catch(async (error: unknown) => {
      // the pages before the one that failed are checked: the next visit begins with that one
      const { step, after, headsLeft } = check;
      await updateRecord(
        state,
        refs.bucket(bucket.bucket),
        (current) => current && { ...current, lifecycleCheck: { ...begun, step, after, headsLeft } },
      );
      throw error;
    });
    const found = { checkedAtMs: clock.nowMs(), rules: rules === undefined ? 'unknown' : 'known', expiring: expiring.length } as const;
    await updateRecord(state, refs.bucket(bucket.bucket), (current) => {
      if (current === undefined) return undefined;
      const { lifecycleCheck: _, ...rest } = current;
      return stopped === undefined
        ? { ...rest, lifecycle: found }
        : { ...rest, lifecycleCheck: { ...begun, ...stopped, headsLeft: check.headsLeft } };
    });
    retryAtMs.delete(bucket.bucket);
    return check.observed;
  };

  /** Where the check continues; a new check, if none has begun or the rules have changed. */
  async function placeOf({ bucket, lifecycleCheck }: BucketRecord, rules: readonly LifecycleRule[], signal: AbortSignal): Promise<Place> {
    const rulesId = createHash('sha256').update(JSON.stringify(rules)).digest('base64url');
    if (lifecycleCheck?.rulesId === rulesId) return lifecycleCheck;
    const headsLeft = headsWorthIt(await scan.countLive(bucket, '', signal));
    return { startedAtMs: clock.nowMs(), rulesId, step: 0, after: '', headsLeft };
  }

  function checkOf(bucket: BucketRecord, { startedAtMs, step, after, headsLeft }: Place, signal: AbortSignal): Check {
    const untilMs = clock.monotonicMs() + VISIT_MAX_MS;
    // a check writes at D − M; the second M allows for its duration, and for the difference between this machine's clock and S3's
    const freshClock = clockOfMs(startedAtMs - 2 * MARGIN_MS);
    const isOver = (): boolean => signal.aborted || clock.monotonicMs() >= untilMs;
    return { bucket, freshClock, signal, isOver, step, after, documentsLeft: VISIT_DOCUMENTS, headsLeft, observed: 0 };
  }

  /** Follows the steps from the place on. Resolves with where the visit stopped at its bound; undefined if all of them have ended. */
  async function followFrom(
    check: Check,
    { step: first, after }: Place,
    steps: readonly Step[],
  ): Promise<Pick<Place, 'step' | 'after'> | undefined> {
    for (const [index, step] of steps.entries()) {
      if (index < first) continue;
      check.step = index;
      const stoppedAfter = await follow(check, step, index === first ? after : '');
      if (stoppedAfter !== undefined) return { step: index, after: stoppedAfter };
    }
    return undefined;
  }

  function isDue({ bucket, source, lifecycle: last, lifecycleCheck }: BucketRecord): boolean {
    if (reportsExpirations(source) || (retryAtMs.get(bucket) ?? 0) > clock.monotonicMs()) return false;
    return last === undefined || lifecycleCheck !== undefined || Math.abs(clock.nowMs() - last.checkedAtMs) >= CHECK_INTERVAL_MS;
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

  /** Documents that contain the time of their expiration. */
  function datedStep(check: Check): Step {
    const beforeMs = clock.nowMs();
    return async (after) => {
      const documents = await maintenance.expiring(check.bucket.bucket, { beforeMs, after, limit: PAGE_DOCUMENTS }, check.signal);
      return { documents, next: documents.length < PAGE_DOCUMENTS ? undefined : documents.at(-1)?.key };
    };
  }

  /** Documents that are old enough to expire under the rule. Those with a past expiration time are of the first step. */
  function ruleStep(check: Check, rule: LifecycleRule): Step {
    const nowMs = clock.nowMs();
    const modifiedUntilMs = expiredUntilMs(rule, nowMs);
    const { prefix, sizeAbove, sizeBelow } = rule;
    const sizes = defined({ sizeAbove, sizeBelow });
    return async (after) => {
      // nothing can have expired yet
      if (modifiedUntilMs === undefined) return { documents: [] };
      const range = { prefix, modifiedUntilMs, ...sizes, after, limit: PAGE_DOCUMENTS };
      const page = await maintenance.aged(check.bucket.bucket, range, check.signal);
      const isOpen = (document: ObjectDocument): boolean =>
        document.clock < check.freshClock && mayHaveTags(rule, document) && !isPast(document.expires_at, nowMs);
      return { ...page, documents: page.documents.filter(isOpen) };
    };
  }

  /**
   * Checks page after page, until listing is cheaper: then it marks the bucket, whose re-index finds the rest.
   * Resolves with the key after which the visit stopped at its bound; undefined if the step has ended.
   */
  async function follow(check: Check, pages: Step, from: string): Promise<string | undefined> {
    for (let after: string | undefined = from; after !== undefined;) {
      check.after = after;
      check.signal.throwIfAborted();
      if (check.isOver() || check.documentsLeft <= 0) return after;
      const { documents, next } = await pages(after);
      check.documentsLeft -= PAGE_DOCUMENTS;
      if (documents.length > check.headsLeft) {
        await gaps.report({ bucket: check.bucket.bucket, kind: 'lifecycle', reason: TOO_MANY, seenAtMs: clock.nowMs() });
        return undefined;
      }
      const count = await observeAgain(check.bucket, documents, check.isOver);
      check.headsLeft -= count;
      check.observed += count;
      if (count < documents.length) return documents[count - 1]?.key ?? after;
      after = next;
    }
    return undefined;
  }
}

const TOO_MANY = 'more objects should have expired than can be checked one by one';

function isPast(text: string | undefined, nowMs: number): boolean {
  return text !== undefined && Date.parse(text) < nowMs;
}
