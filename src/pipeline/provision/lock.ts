/**
 * The lock under which AWS is changed. Policies are whole documents that buckets share, so one change at a time is made in the
 * whole installation. A holder that was killed keeps it for a minute.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';

const LOCK_ID = 'lock:connect';
/** Three times as long as a pass may take, so that no lock of a living holder ends. It is renewed before each write too. */
const LOCK_LIFE_MS = 60_000;

const lockSchema = z.object({ holder: z.string(), expiresAtMs: z.number() });

interface LockDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** Renews the lock. Throws `connect.busy` if another process has taken it. */
export type KeepLock = () => Promise<void>;

/** Runs work under the lock; `held` if another process holds it. */
export type UnderLock = <Result>(work: (keep: KeepLock) => Promise<Result>) => Promise<Result | 'held'>;

/** Creates the function. Clocks that differ by minutes can let two holders in: the work must be idempotent, and reads what it wrote. */
export function createConnectLock({ state, clock }: LockDependencies): UnderLock {
  return async function underLock(work) {
    const holder = randomUUID();
    let version = await take(holder);
    if (version === undefined) return 'held';
    try {
      return await work(async () => {
        const entry = await state.put(lockOf(holder), version ?? null);
        if (entry === 'conflict') throw new RequestError('connect.busy', 'another process changes connections now: repeat the request');
        ({ version } = entry);
      });
    } finally {
      // a lock that is left behind ends by itself
      if (version !== undefined) await state.remove(LOCK_ID, version).catch(() => undefined);
    }
  };

  async function take(holder: string): Promise<string | undefined> {
    const current = await state.get(LOCK_ID);
    const held = lockSchema.safeParse(current?.record);
    if (held.success && held.data.expiresAtMs > clock.nowMs()) return undefined;
    const taken = await state.put(lockOf(holder), current?.version ?? null);
    return taken === 'conflict' ? undefined : taken.version;
  }

  function lockOf(holder: string) {
    return { id: LOCK_ID, kind: 'lock', record: { holder, expiresAtMs: clock.nowMs() + LOCK_LIFE_MS } } as const;
  }
}
