/**
 * Bounds an LRU cache by the number of its entries, for caches that may hold many and mostly hold few. With `max` alone, it would
 * reserve memory for all of them when it is created: 10,000 take 300 kB and a millisecond.
 */
export function entriesUpTo(count: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: count, sizeCalculation: () => 1 };
}
