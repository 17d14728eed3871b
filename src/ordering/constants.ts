/**
 * The constants of the ordering rules, in milliseconds. They depend on each other: before you change one, read the
 * inequalities in test/ordering/constants.test.ts and docs/internals/ordering.md.
 */

/** W: the greatest distance between a sequencer and its event's time at which the sequencer is trusted. */
export const PLAUSIBLE_MS = 15_000;
/** M: an observation is written at a clock this far before its own time, so that a later exact event always wins. */
export const MARGIN_MS = 20_000;
/** S: how long after an inexact event an observation is final. */
export const SETTLE_MS = 20_000;
/** P: how long an answer (HEAD, LIST page) or an exact decision may be written; older ones are never sent to the store. */
export const ANSWER_LIFE_MS = 30_000;
/** C: the greatest age of a bucket record that a worker may use for decisions. */
export const BUCKET_RECORD_AGE_MAX_MS = 10_000;
/** Q: how long a reconcile waits after it has stored its floor. */
export const RECONCILE_WAIT_MS = 60_000;
/** F: a clock more than this after the message's SentTimestamp lies in the future and is not plausible (rule 10). */
export const FUTURE_MS = 60_000;
/** How far S3's clock may be ahead of SQS's (rule 10). More was measured by a process whose own clock is slow. */
export const S3_AHEAD_MAX_MS = 900_000;
/** A: an event at least this old resolves instead of writing directly (rule 3). */
export const EXACT_AGE_MAX_MS = 86_400_000;
/** E: how long after its due time a settle is planned, and the shortest delay of a settle (rule 4). */
export const SETTLE_SLACK_MS = 3_000;
/** V: how long after a delete "versioning was never enabled" must have been read for the delete to be exact (rule 3). */
export const VERSIONING_READ_AFTER_MS = 3_000;
/** The index's refresh interval. */
export const REFRESH_INTERVAL_MS = 1_000;
/**
 * L: how long a tombstone is kept, so that no write of a state from before the delete can arrive later. Exact events write up
 * to A after their time, and a decision lives for P; everything else reads S3 first, so it writes the current state. The rest
 * is for wrong clocks and suspended processes.
 */
export const TOMBSTONE_LIFE_MS = 604_800_000;
