/**
 * Follows lifecycle expirations for sources that send no event for them. Once a day, objects that should have expired are
 * checked until S3 has deleted them, which may be days late: a few objects one by one, many by opening a gap, which a re-index
 * of their prefix closes.
 */
import { reportsExpirations, type BucketRecord } from '../../domain/bucket.ts';
import { commonPrefix } from '../../domain/gaps/plan.ts';
import { expiredUntilMs, expiringRules, headsWorthIt, mayHaveTags, type LifecycleRule } from '../../domain/calendar/lifecycle-rules.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { faultOf } from '../../domain/fault.ts';
import { clockOfMs } from '../../domain/ordering/clock.ts';
import { MARGIN_MS } from '../../domain/ordering/constants.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { ObjectMaintenance, ObjectScan } from '../ports/object-index.ts';
import type { BucketLifecycle } from '../ports/storage.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { refs, updateRecord } from '../records/stored.ts';
import type { LookAgain } from './look-again.ts';
import type { Visit } from './sweep.ts';

const CHECK_INTERVAL_MS = 86_400_000;
/** How long a bucket waits after a failed check, so that an outage does not cause requests every minute. */
const RETRY_MS = 900_000;
const PAGE_DOCUMENTS = 100;

interface LifecycleDependencies {
  readonly state: StateStore;
  readonly maintenance: Pick<ObjectMaintenance, 'expiring' | 'aged'>;
  readonly scan: Pick<ObjectScan, 'countLive'>;
  readonly lifecycle: BucketLifecycle;
  readonly lookAgain: LookAgain;
  readonly gaps: Pick<GapReports, 'report'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** One check of one bucket. */
interface Check {
  readonly bucket: BucketRecord;
  /** Documents with a clock at or above this one were checked just now, by this check or for an event. */
  readonly freshClock: number;
  readonly signal: AbortSignal;
  /** How many objects it may still check one by one. */
  headsLeft: number;
  /** How many objects it has checked. */
  looks: number;
}

/** Returns the page of documents after a key, in key order. */
type Pages = (after: string) => Promise<{ readonly documents: readonly ObjectDocument[]; readonly next?: string | undefined }>;

/** Creates the visit of one bucket: the first visit checks the bucket, and then one visit a day. */
export function createVisitLifecycle(dependencies: LifecycleDependencies): Visit {
  const { state, maintenance, scan, lifecycle, lookAgain, gaps, clock, telemetry } = dependencies;
  /** When a bucket may be checked again after a failure (monotonic). */
  const retryAtMs = new Map<string, number>();

  return async function visitLifecycle(bucket, signal) {
    if (!isDue(bucket)) return undefined;
    retryAtMs.set(bucket.bucket, clock.monotonicMs() + RETRY_MS);
    const rules = await rulesOf(bucket, signal);
    const expiring = expiringRules(rules ?? []);
    const headsLeft = headsWorthIt(await scan.countLive(bucket.bucket, '', signal));
    // a check writes at D − M; the second M allows for its duration, and for the difference between this machine's clock and S3's
    const freshClock = clockOfMs(clock.nowMs() - 2 * MARGIN_MS);
    const check: Check = { bucket, freshClock, signal, headsLeft, looks: 0 };
    await followDated(check, expiring);
    for (const rule of expiring) await followRule(check, rule);
    const found = { checkedAtMs: clock.nowMs(), rules: rules === undefined ? 'unknown' : 'known', expiring: expiring.length } as const;
    await updateRecord(state, refs.bucket(bucket.bucket), (current) =>
      current === undefined ? undefined : { ...current, lifecycle: found },
    );
    retryAtMs.delete(bucket.bucket);
    return check.looks;
  };

  function isDue({ bucket, source, lifecycle: last }: BucketRecord): boolean {
    if (reportsExpirations(source) || (retryAtMs.get(bucket) ?? 0) > clock.monotonicMs()) return false;
    return last === undefined || Math.abs(clock.nowMs() - last.checkedAtMs) >= CHECK_INTERVAL_MS;
  }

  /** The bucket's lifecycle rules; undefined if S3 denies reading them. */
  async function rulesOf(bucket: BucketRecord, signal: AbortSignal): Promise<readonly LifecycleRule[] | undefined> {
    try {
      return await lifecycle.rulesOf(bucket, signal);
    } catch (error) {
      const { code, reason } = faultOf(error);
      if (code !== 'lifecycle.denied') throw error;
      telemetry.requestFailed('read the lifecycle rules of a bucket', code, reason);
      return undefined;
    }
  }

  /** Follows documents that contain the time of their expiration. */
  async function followDated(check: Check, rules: readonly LifecycleRule[]): Promise<void> {
    const beforeMs = clock.nowMs();
    const pages: Pages = async (after) => {
      const documents = await maintenance.expiring(check.bucket.bucket, { beforeMs, after, limit: PAGE_DOCUMENTS }, check.signal);
      return { documents, next: documents.length < PAGE_DOCUMENTS ? undefined : documents.at(-1)?.key };
    };
    await follow(check, pages, (key) => {
      const prefix = commonPrefix(rules.map((rule) => rule.prefix));
      return key.startsWith(prefix) ? prefix : '';
    });
  }

  /** Follows documents that are old enough to expire under the rule. Those with a past expiration time were checked before. */
  async function followRule(check: Check, rule: LifecycleRule): Promise<void> {
    const nowMs = clock.nowMs();
    const modifiedUntilMs = expiredUntilMs(rule, nowMs);
    if (modifiedUntilMs === undefined) return;
    const { prefix, sizeAbove, sizeBelow } = rule;
    const sizes = { ...(sizeAbove !== undefined && { sizeAbove }), ...(sizeBelow !== undefined && { sizeBelow }) };
    const pages: Pages = async (after) => {
      const range = { prefix, modifiedUntilMs, ...sizes, after, limit: PAGE_DOCUMENTS };
      const page = await maintenance.aged(check.bucket.bucket, range, check.signal);
      const isOpen = (document: ObjectDocument): boolean =>
        document.clock < check.freshClock && mayHaveTags(rule, document) && !isPast(document.expires_at, nowMs);
      return { ...page, documents: page.documents.filter(isOpen) };
    };
    await follow(check, pages, () => prefix);
  }

  /** Checks page after page, until listing is cheaper: then it opens a gap of the prefix, whose re-index finds the rest. */
  async function follow(check: Check, pages: Pages, prefixOf: (key: string) => string): Promise<void> {
    for (let after: string | undefined = ''; after !== undefined;) {
      check.signal.throwIfAborted();
      const { documents, next } = await pages(after);
      const [first] = documents;
      if (first !== undefined && documents.length > check.headsLeft) return openGap(check.bucket.bucket, prefixOf(first.key));
      await lookAgain(check.bucket, documents);
      check.headsLeft -= documents.length;
      check.looks += documents.length;
      after = next;
    }
  }

  async function openGap(bucket: string, prefix: string): Promise<void> {
    const reason = 'more objects should have expired than can be checked one by one';
    await gaps.report({ bucket, kind: 'lifecycle', reason, seenAtMs: clock.nowMs(), ...(prefix !== '' && { prefix }) });
  }
}

function isPast(text: string | undefined, nowMs: number): boolean {
  return text !== undefined && Date.parse(text) < nowMs;
}
