/** Lifecycle rules: what they are going to expire, and when, as far as documents can tell. */
import type { ObjectDocument } from '../documents/document.ts';

/** One lifecycle rule, as far as it matters here. */
export interface LifecycleRule {
  readonly id: string;
  readonly isEnabled: boolean;
  readonly prefix: string;
  /** All of these must be on an object; documents do not always know. */
  readonly tags: Readonly<Record<string, string>>;
  /** Only objects that are larger, or smaller. */
  readonly sizeAbove?: number;
  readonly sizeBelow?: number;
  /**
   * Days after creation, or a date: when the present object expires. A rule with neither does not change the present
   * state: it transitions, or is about old versions, delete markers or unfinished uploads.
   */
  readonly expiresAfterDays?: number;
  readonly expiresAtMs?: number;
}

const DAY_MS = 86_400_000;

/** Those in force that expire present objects. */
export function expiringRules(rules: readonly LifecycleRule[]): readonly LifecycleRule[] {
  return rules.filter(
    ({ isEnabled, expiresAfterDays, expiresAtMs }) => isEnabled && (expiresAfterDays !== undefined || expiresAtMs !== undefined),
  );
}

/**
 * What was last modified at or before this moment should have expired by now under the rule; undefined: nothing yet. S3 adds
 * the days to the creation and rounds up to the next midnight UTC; a date holds for later objects too.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html
 */
export function expiredUntilMs({ expiresAfterDays, expiresAtMs }: LifecycleRule, nowMs: number): number | undefined {
  if (expiresAfterDays !== undefined) return Math.floor(nowMs / DAY_MS) * DAY_MS - expiresAfterDays * DAY_MS;
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? nowMs : undefined;
}

/** Whether the document's tags fit the rule's, where both are known: what is not known may. */
export function mayHaveTags({ tags }: LifecycleRule, document: ObjectDocument): boolean {
  const { tags: known } = document;
  return known === undefined || Object.entries(tags).every(([name, value]) => known[name] === value);
}

/** How many HEADs cost S3's customers as much as one LIST request of 1,000 keys. https://aws.amazon.com/s3/pricing/ */
const HEADS_PER_LIST = 12.5;
const PAGE_KEYS = 1_000;
const HEADS_MIN = 1_000;
/** Some three minutes at 60 ms and eight at once. */
const HEADS_MAX = 20_000;

/** How many objects a check looks at one by one, before listing the bucket of so many documents is cheaper. */
export function headsWorthIt(documents: number): number {
  return Math.min(HEADS_MAX, Math.max(HEADS_MIN, Math.ceil((documents / PAGE_KEYS) * HEADS_PER_LIST)));
}
