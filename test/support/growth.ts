/** How the time of a function grows with the length of its text: a ratio, which no machine and no load beside it changes much. */

const LENGTH = 1_000;
const FACTOR = 10;
/** The best of so many measurements of about a millisecond: what disturbs one makes it longer, never shorter. */
const MEASUREMENTS = 9;

/** What is linear; above it the measurement is repeated, because a busy machine can disturb all of one. */
const LINEAR_MAX = 15;
const ATTEMPTS = 6;

/**
 * How many times as long `work` takes for a text of ten times the length: about 10 if its time is linear, about 100 if it
 * grows with the square. The texts repeat `unit`.
 */
export function growthOf(work: (text: string) => unknown, unit: string): number {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && least > LINEAR_MAX; attempt += 1) least = Math.min(least, measured(work, unit));
  return least;
}

function measured(work: (text: string) => unknown, unit: string): number {
  const short = textOf(unit, LENGTH);
  const long = textOf(unit, LENGTH * FACTOR);
  const best = { short: Number.POSITIVE_INFINITY, long: Number.POSITIVE_INFINITY };
  // the first round compiles
  for (let round = 0; round <= MEASUREMENTS; round += 1) {
    // as many characters in both, so that neither is measured better
    best.short = Math.min(best.short, timeOf(() => work(short), FACTOR) / FACTOR);
    best.long = Math.min(
      best.long,
      timeOf(() => work(long), 1),
    );
  }
  return best.long / best.short;
}

function textOf(unit: string, length: number): string {
  // joined, because a repeated string is a tree of its parts until somebody reads it
  return Array.from({ length: Math.ceil(length / unit.length) }, () => unit).join('');
}

function timeOf(work: () => unknown, runs: number): number {
  const beganMs = performance.now();
  for (let run = 0; run < runs; run += 1) work();
  return performance.now() - beganMs;
}
