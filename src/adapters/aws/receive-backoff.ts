/** How long a poller waits after receives that failed. */

/** One connection that was reset says nothing about the next one. A second at each of them would cost a poller with an answer each 20 ms 4 % of its time at one reset in 1,000. */
const FIRST_MS = 100;
/** Without it, sqs-consumer sends 27 requests a second to a closed port. */
const BACKOFF_MIN_MS = 1_000;
const BACKOFF_MAX_MS = 30_000;

/** Returns how long to wait after this many receives in a row that failed. The wait has jitter. */
export function receiveBackoffMs(failures: number): number {
  const fullMs = failures <= 1 ? FIRST_MS : Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures - 2, 10));
  // a random time in the upper half, so that pollers that failed together do not return together
  return fullMs * (0.5 + Math.random() / 2);
}
