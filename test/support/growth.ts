/** How the time of a function grows with the length of its text: a ratio, which no machine and no load beside it changes much. */

/** Large enough that a constant part of the time does not count. */
const LENGTH = 1_000;
const FACTOR = 10;
/** Runs of the short text for each run of the long one are FACTOR, so that both measure the same number of characters. */
const LONG_RUNS = 2;
/** The best of so many measurements: whatever disturbs one makes it longer, never shorter. */
const MEASUREMENTS = 5;

/**
 * How many times as long `work` takes for a text of ten times the length: about 10 if its time is linear, about 100 if it
 * grows with the square. The texts repeat `unit`. CPU time of this thread is measured, so that other processes do not count.
 */
export function growthOf(work: (text: string) => unknown, unit: string): number {
  const short = textOf(unit, LENGTH);
  const long = textOf(unit, LENGTH * FACTOR);
  // the first runs compile
  for (const text of [short, long]) work(text);
  const best = (text: string, runs: number): number =>
    Math.min(...Array.from({ length: MEASUREMENTS }, () => cpuOf(() => work(text), runs))) / runs;
  return best(long, LONG_RUNS) / best(short, LONG_RUNS * FACTOR);
}

function textOf(unit: string, length: number): string {
  // joined, because a repeated string is a tree of its parts until somebody reads it
  return Array.from({ length: Math.ceil(length / unit.length) }, () => unit).join('');
}

function cpuOf(work: () => unknown, runs: number): number {
  const before = process.threadCpuUsage();
  for (let run = 0; run < runs; run += 1) work();
  const { user, system } = process.threadCpuUsage(before);
  return Math.max(1, user + system);
}
