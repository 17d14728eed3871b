/**
 * Did the bucket's rules do what they say? Asked once a comparison of the whole bucket has ended: the index then is what the bucket holds,
 * so what should have expired is one sum for each rule.
 */
import { expiredUntilMs, expiringRules, type LifecycleRule } from '../aws/lifecycle.rules.ts';
import type { BucketLifecycle } from '../aws/storage.ts';
import { defined } from '../base/defined.ts';
import { faultOf } from '../base/fault.ts';
import type { BucketRecord } from '../records/bucket.ts';
import type { Overdue } from '../records/comparison.ts';
import { holds, type Condition } from '../store/conditions.rules.ts';
import type { SumUsage, WithPorts } from '../store/store.ts';

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

/** Looks. What may not be read, or is not answered, is left out: a comparison never fails for it. */
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
