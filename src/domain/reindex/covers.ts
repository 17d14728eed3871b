/**
 * The moment before which a job sees every change (rule 8). The times of gaps are those of workers and of SQS, and a listing's
 * is S3's: a job covers what happened before it began by the clock of S3 *and* by that of the worker which began it. Where one
 * is wrong, a gap is closed later than it could be, and never by a job that began before the loss.
 */
export function coversBefore({
  observedAtMs,
  sentMs,
}: {
  /** D of the first page. */
  readonly observedAtMs: number;
  /** When that page was requested, by the worker's clock. */
  readonly sentMs: number;
}): number {
  return Math.min(observedAtMs, sentMs);
}
