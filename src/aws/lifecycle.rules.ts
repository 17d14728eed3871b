/** Lifecycle rules: which objects they expire and when, as far as documents can tell. */
import type { ObjectDocument } from '../ordering/document.ts';

/** The parts of a lifecycle rule that decide which objects expire. */
export interface LifecycleRule {
  readonly id: string;
  readonly isEnabled: boolean;
  readonly prefix: string;
  /** An object must have all of these tags. Documents do not always contain tags. */
  readonly tags: Readonly<Record<string, string>>;
  /** Only objects larger than `sizeAbove` bytes, or smaller than `sizeBelow` bytes. */
  readonly sizeAbove?: number;
  readonly sizeBelow?: number;
  /**
   * When the current object expires: days after its creation, or a date. A rule with neither never expires a current
   * object: it transitions objects, or concerns old versions, delete markers or unfinished uploads.
   */
  readonly expiresAfterDays?: number;
  readonly expiresAtMs?: number;
}

const DAY_MS = 86_400_000;

/** The enabled rules that expire current objects. */
export function expiringRules(rules: readonly LifecycleRule[]): readonly LifecycleRule[] {
  return rules.filter(
    ({ isEnabled, expiresAfterDays, expiresAtMs }) => isEnabled && (expiresAfterDays !== undefined || expiresAtMs !== undefined),
  );
}

/**
 * The latest modification time of objects that should have expired by now under the rule; undefined: none yet. S3 adds the
 * days to the creation time and rounds up to the next midnight UTC; a date also applies to objects created after it.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html
 */
export function expiredUntilMs({ expiresAfterDays, expiresAtMs }: LifecycleRule, nowMs: number): number | undefined {
  if (expiresAfterDays !== undefined) return Math.floor(nowMs / DAY_MS) * DAY_MS - expiresAfterDays * DAY_MS;
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? nowMs : undefined;
}

/** Whether the object may have the rule's tags. A document without tags counts as a match, since its tags are unknown. */
export function mayHaveTags({ tags }: LifecycleRule, document: ObjectDocument): boolean {
  const { tags: known } = document;
  return known === undefined || Object.entries(tags).every(([name, value]) => known[name] === value);
}

/** S3 charges as much for this many HEADs as for one LIST request of 1,000 keys. https://aws.amazon.com/s3/pricing/ */
const HEADS_PER_LIST = 12.5;
const PAGE_KEYS = 1_000;
const HEADS_MIN = 1_000;
/** About three minutes of HEADs at 60 ms each, eight at a time. */
const HEADS_MAX = 20_000;

/** How many objects a check may HEAD before listing the bucket, which has this many documents, is cheaper. */
export function headsWorthIt(documents: number): number {
  return Math.min(HEADS_MAX, Math.max(HEADS_MIN, Math.ceil((documents / PAGE_KEYS) * HEADS_PER_LIST)));
}
