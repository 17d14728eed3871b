/**
 * The constants of the ordering rules, in milliseconds. They hang together: see the inequalities in
 * test/domain/constants.test.ts and the ordering section of src/README.md before changing one.
 */

/** W: how far a sequencer may lie from its event's time and still be believed. */
export const PLAUSIBLE_MS = 15_000;
/** M: an observation is written this far below its own moment, so that a later exact event always wins. */
export const MARGIN_MS = 20_000;
/** S: how long after an inexact event an observation is final. */
export const SETTLE_MS = 20_000;
/** P: the life of an answer (HEAD, LIST page) or of an exact decision: never sent when older. */
export const ANSWER_LIFE_MS = 30_000;
/** C: the oldest bucket record that a worker may decide by. */
export const BUCKET_RECORD_AGE_MAX_MS = 10_000;
/** Q: how long a reconcile waits after it stored its floor. */
export const RECONCILE_WAIT_MS = 60_000;
/** A clock this far past the message's SentTimestamp is from the future and implausible (rule 10). */
export const FUTURE_MS = 60_000;
/** An event older than this no longer writes directly: it resolves (rule 3). */
export const EXACT_AGE_MAX_MS = 86_400_000;
/** How much later than its due moment a settle is planned, and the least delay of one (rule 4). */
export const SETTLE_SLACK_MS = 3_000;
/** A "versioning never enabled" must have been read this long after a delete to make it exact (rule 3). */
export const VERSIONING_READ_AFTER_MS = 3_000;
/** The index's refresh interval. */
export const REFRESH_INTERVAL_MS = 1_000;
/**
 * How long a tombstone stays: for as long as a write from before the delete may still come. Exact events write for a day
 * after their time, and their answers live for P; everything else asks S3 first and so writes the truth. A week leaves
 * six days for clocks that are wrong and processes that stood still.
 */
export const TOMBSTONE_LIFE_MS = 604_800_000;
