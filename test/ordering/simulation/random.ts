/** The draws of a history. Everything is drawn from one seed, so that a wrong history can be played again. */

export interface Random {
  /** In [0, 1). */
  next(): number;
  int(min: number, max: number): number;
  pick<T>(choices: readonly T[]): T;
  chance(probability: number): boolean;
}

/** mulberry32: small, fast, good enough to draw histories. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  return { next, int, pick: (choices) => choices[int(0, choices.length - 1)]!, chance: (probability) => next() < probability };
}
