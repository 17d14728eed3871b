/** How long the live path takes from a message in the bucket queue to the document in the index, seen from outside. */
import { setTimeout as delay } from 'node:timers/promises';

export interface LagProbe {
  /** Stops, and answers the lags so far, in ms. */
  end(): Promise<readonly number[]>;
}

export interface LagOptions {
  /** Puts a message that tells of a new object with this key. */
  readonly tell: (key: string) => void;
  /** Whether the document of the key is in the index, realtime. */
  readonly isIndexed: (key: string) => Promise<boolean>;
  readonly everyMs?: number;
}

/** Well below what is measured, and no load. */
const LOOK_EVERY_MS = 10;
/** A probe that is not there by then counts with this lag. */
const LAG_MAX_MS = 60_000;

/** Tells of one object after the other until it is ended; each is waited for before the next. */
export function probeLag({ tell, isIndexed, everyMs = 200 }: LagOptions): LagProbe {
  const lags: number[] = [];
  const ending = new AbortController();

  async function probe(number: number): Promise<void> {
    const key = `lag-probe/${process.pid}-${Date.now()}-${number}`;
    const toldMs = performance.now();
    tell(key);
    while (performance.now() - toldMs < LAG_MAX_MS && !(await isIndexed(key))) await delay(LOOK_EVERY_MS);
    lags.push(performance.now() - toldMs);
  }

  async function run(): Promise<void> {
    for (let number = 0; !ending.signal.aborted; number += 1) {
      await probe(number);
      await delay(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    async end() {
      ending.abort();
      await running;
      return lags;
    },
  };
}
