/** Chance that can be repeated: the same seed gives the same numbers. */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

export interface Random {
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** True this often. */
  chance(probability: number): boolean;
}

/** mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }
  const integer = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  return { integer, pick: (items) => items[integer(0, items.length - 1)]!, chance: (probability) => next() < probability };
}

/** Lets the program's own chance (parts of waits, the ends of ids) be this one while `run` runs, so that a seed tells one story. */
export async function withChance<Result>(random: Random, run: () => Promise<Result>): Promise<Result> {
  const real = { number: Math.random, bytes: crypto.randomBytes };
  Math.random = () => random.integer(0, 0xff_ff_ff) / 0x1_00_00_00;
  crypto.randomBytes = (sizeBytes: number) => Buffer.from(Array.from({ length: sizeBytes }, () => random.integer(0, 255)));
  syncBuiltinESMExports();
  try {
    return await run();
  } finally {
    Math.random = real.number;
    crypto.randomBytes = real.bytes;
    syncBuiltinESMExports();
  }
}
