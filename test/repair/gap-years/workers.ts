/** Processes with the role `reindex`: the product's own parts on the fakes. They start and stop as there is work, and may be killed. */
import type { Clock } from '../../../src/process/clock.ts';
import type { BucketListing, ObjectStorage } from '../../../src/aws/storage.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import type { Telemetry } from '../../../src/process/telemetry.ts';
import { createRepair } from '../../support/worlds/roles.ts';

/** What a process repeats every second or so is repeated this often here: nothing that is tested depends on it, and a year has 31 million seconds. */
const REPEAT_MS = 15_000;
const REPEATED_MS = new Set([500, 1_000, 2_000, 5_000]);

export interface WorkerParts {
  readonly name: string;
  readonly store: Store;
  readonly s3: ObjectStorage & BucketListing;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

export interface Worker {
  /** Ends the process in order. */
  stop(): Promise<void>;
  /** Ends it at once: nothing of it leaves the process any more, and no call of it ends. */
  kill(): void;
}

/** Starts the process. */
export function startWorker({ name, store, s3, clock, telemetry }: WorkerParts): Worker {
  const dead = new AbortController();
  const own = { clock: mortalClock(clock, dead.signal), telemetry };
  const state = mortal(store.state, dead.signal);
  const objects = mortal(store.objects, dead.signal);
  const role = createRepair({ ...own, store: { state, objects, scan: store.scan }, s3, stopped: dead.signal, worker: name, listings: 4 });
  role.start();
  return { stop: () => role.stop(AbortSignal.abort(new Error('at once'))), kill: () => dead.abort(new Error(`${name} was killed`)) };
}

/** The port until the process dies. Then no call is carried out, and none ends. */
function mortal<Port extends StateStore | Store['objects']>(port: Port, dead: AbortSignal): Port {
  const wrapped = Object.entries(port).map(([name, value]) => {
    if (typeof value !== 'function') return [name, value] as const;
    const call = value as (...args: unknown[]) => Promise<unknown>;
    return [
      name,
      (...args: unknown[]) => (dead.aborted ? never() : call(...args).then((answer) => (dead.aborted ? never() : answer))),
    ] as const;
  });
  return Object.fromEntries(wrapped) as Port;
}

function mortalClock(clock: Clock, dead: AbortSignal): Clock {
  return {
    ...clock,
    sleep: (delayMs, signal) => {
      const ended = signal === undefined ? dead : AbortSignal.any([signal, dead]);
      return clock
        .sleep(REPEATED_MS.has(delayMs) ? REPEAT_MS : delayMs, ended)
        .catch((error: unknown) => (dead.aborted ? never() : Promise.reject(error)));
    },
  };
}

function never<Answer>(): Promise<Answer> {
  return new Promise(() => {});
}
