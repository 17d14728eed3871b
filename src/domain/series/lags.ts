/**
 * How long events took, as counts by class of durations: two classes for each doubling, so that a percentile is at most √2 of the
 * true one, up or down. Counts of several workers are added.
 */

/** How many events are of each class. */
export type Lags = Readonly<Record<string, number>>;

const SHORTEST_MS = 50;
const CLASSES_OF_DOUBLING = 2;
/** Of the longest wait in a queue, which is 14 days. */
const CLASS_MAX = 50;

/** The class of a duration: the first one whose longest duration is not shorter. */
export function lagClassOf(lagMs: number): number {
  if (lagMs <= SHORTEST_MS) return 0;
  return Math.min(CLASS_MAX, Math.ceil(CLASSES_OF_DOUBLING * Math.log2(lagMs / SHORTEST_MS)));
}

function longestOf(lagClass: number): number {
  return SHORTEST_MS * 2 ** (lagClass / CLASSES_OF_DOUBLING);
}

/** The counts as they are stored: class, count, class, count, …, which takes half of the bytes. */
export type PackedLags = readonly number[];

export function packedLags(counts: ReadonlyMap<number, number>): number[] {
  return [...counts].flat();
}

function pairsOf(packed: PackedLags): readonly (readonly [lagClass: number, count: number])[] {
  return packed.flatMap((lagClass, at) => (at % 2 === 0 ? [[lagClass, packed[at + 1] ?? 0] as const] : []));
}

/** The counts of both. */
export function addedLags(a: Lags, b: PackedLags): Lags {
  const sum: Record<string, number> = { ...a };
  for (const [lagClass, count] of pairsOf(b)) sum[lagClass] = (sum[lagClass] ?? 0) + count;
  return sum;
}

/** The duration that this share of the events did not exceed, in milliseconds; undefined if there are none. */
export function percentileMs(lags: Lags, share: number): number | undefined {
  const classes = Object.entries(lags)
    .map(([lagClass, count]) => ({ lagClass: Number(lagClass), count }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => a.lagClass - b.lagClass);
  const wanted = share * classes.reduce((sum, { count }) => sum + count, 0);
  let before = 0;
  for (const { lagClass, count } of classes) {
    if (before + count >= wanted) {
      const fromMs = lagClass === 0 ? 0 : longestOf(lagClass - 1);
      return Math.round(fromMs + ((wanted - before) / count) * (longestOf(lagClass) - fromMs));
    }
    before += count;
  }
  return undefined;
}
