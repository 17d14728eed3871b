/** What a re-index keeps in memory, measured in a process of its own. */
import { fork } from 'node:child_process';
import { once } from 'node:events';

/** Every n-th key that differs in each mode; in `first`, the index is empty. */
export const MEMORY_DRIFT = { first: undefined, unchanged: undefined, 'drift of 1 %': 100, 'drift of 10 %': 10 } as const;
export const memoryModes = Object.keys(MEMORY_DRIFT) as readonly (keyof typeof MEMORY_DRIFT)[];

export interface Measurement {
  readonly mode: keyof typeof MEMORY_DRIFT;
  readonly objects: number;
}

export interface Measured {
  /** The most memory that survived a forced garbage collection. */
  readonly peakBytes: number;
  /** How many keys differed. */
  readonly differences: number;
}

export interface MemoryProbe {
  measure(measurement: Measurement): Promise<Measured>;
  close(): Promise<void>;
}

/** Starts the process; measurements follow one another. */
export async function openMemoryProbe(): Promise<MemoryProbe> {
  const child = fork(new URL('reindex-memory-process.ts', import.meta.url), { execArgv: ['--expose-gc', '--max-semi-space-size=16'] });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the process that measures memory has ended');
  });
  ended.catch(() => undefined);
  const answer = (): Promise<unknown[]> => Promise.race([once(child, 'message'), ended]);
  await answer();
  return {
    async measure(measurement) {
      child.send(measurement);
      const [measured] = await answer();
      return measured as Measured;
    },
    async close() {
      child.disconnect();
      await ended.catch(() => undefined);
    },
  };
}
