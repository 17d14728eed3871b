/**
 * Follows lifecycle expirations that a source does not tell: once a day, what should have expired is looked at until S3 has
 * done it, which may be days late. A few objects one by one; many by a gap, which a re-index of their prefix closes.
 */
import { tellsExpirations, type BucketRecord } from '../../domain/bucket.ts';
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
/** After a failure, so that an outage is not asked about every minute. */
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

/** What one check may still look at. */
interface Check {
  readonly bucket: BucketRecord;
  /** Documents of a clock above this were looked at just now, by this check or for an event. */
  readonly freshClock: number;
  readonly signal: AbortSignal;
  headsLeft: number;
  looks: number;
}

/** Pages of documents in key order, from after that key on. */
type Pages = (after: string) => Promise<{ readonly documents: readonly ObjectDocument[]; readonly next?: string | undefined }>;

/** Creates the visit to one bucket: at its first, and then daily. */
export function createVisitLifecycle(dependencies: LifecycleDependencies): Visit {
  const { state, maintenance, scan, lifecycle, lookAgain, gaps, clock, telemetry } = dependencies;
  /** By bucket, monotonic. */
  const retryAtMs = new Map<string, number>();

  return async function visitLifecycle(bucket, signal) {
    if (!isDue(bucket)) return undefined;
    retryAtMs.set(bucket.bucket, clock.monotonicMs() + RETRY_MS);
    const rules = await rulesOf(bucket, signal);
    const expiring = expiringRules(rules ?? []);
    const headsLeft = headsWorthIt(await scan.countLive(bucket.bucket, '', signal));
    // a look writes at D − M; its request takes some seconds, and D may be this machine's time or not quite
    const freshClock = clockOfMs(clock.nowMs() - 2 * MARGIN_MS);
    const check: Check = { bucket, freshClock, signal, headsLeft, looks: 0 };
    await followTold(check, expiring);
    for (const rule of expiring) await followRule(check, rule);
    const found = { checkedAtMs: clock.nowMs(), rules: rules === undefined ? 'unknown' : 'known', expiring: expiring.length } as const;
    await updateRecord(state, refs.bucket(bucket.bucket), (current) =>
      current === undefined ? undefined : { ...current, lifecycle: found },
    );
    retryAtMs.delete(bucket.bucket);
    return check.looks;
  };

  function isDue({ bucket, source, lifecycle: last }: BucketRecord): boolean {
    if (tellsExpirations(source) || (retryAtMs.get(bucket) ?? 0) > clock.monotonicMs()) return false;
    return last === undefined || Math.abs(clock.nowMs() - last.checkedAtMs) >= CHECK_INTERVAL_MS;
  }

  /** Undefined where they may not be read. */
  async function rulesOf(bucket: BucketRecord, signal: AbortSignal): Promise<readonly LifecycleRule[] | undefined> {
    try {
      return await lifecycle.rulesOf(bucket, signal);
    } catch (error) {
      const { code, reason } = faultOf(error);
      if (code !== 'lifecycle.denied') throw error;
      telemetry.requestFailed('read the lifecycle rules', code, reason);
      return undefined;
    }
  }

  /** Documents whose objects told by themselves when they were going to expire. */
  async function followTold(check: Check, rules: readonly LifecycleRule[]): Promise<void> {
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

  /** What is old enough under a rule, or may be. What told its own moment was looked at before. */
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

  /** Looks at all of them, until listing is cheaper: then a gap of the prefix is opened, and its re-index finds the others. */
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
    const reason = 'more expirations are due than can be looked at one by one';
    await gaps.report({ bucket, kind: 'lifecycle', reason, seenAtMs: clock.nowMs(), ...(prefix !== '' && { prefix }) });
  }
}

function isPast(text: string | undefined, nowMs: number): boolean {
  return text !== undefined && Date.parse(text) < nowMs;
}
