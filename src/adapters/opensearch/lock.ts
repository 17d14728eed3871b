import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { StateEntry, StateStore, StateVersion } from '../../pipeline/ports/state.ts';

/** The lock's record in the state index. */
const LOCK_ID = 'lock:index-setup';
/** A holder that crashed holds the lock no longer than this. */
const LOCK_LIFE_MS = 60_000;
/** A third of its life: two renewals may fail. */
const RENEW_AFTER_MS = 20_000;
/** How often a waiting worker looks: a few requests a second from a whole fleet that starts at once. */
const POLL_MS = 500;

const lockSchema = z.object({ holder: z.string(), expiresAtMs: z.number() });

interface LockDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
}

/**
 * Makes a function that runs its work under the setup lock, as soon as nobody else holds it. `keep` is called between
 * steps and renews the lock when it is due. The work must be idempotent: clocks that disagree by a minute can let two
 * holders in at once.
 */
export function createSetupLock({ state, clock }: LockDependencies) {
  const holder = randomUUID();

  async function write(expected: StateVersion | null, signal?: AbortSignal): Promise<StateVersion | undefined> {
    const record = { holder, expiresAtMs: clock.nowMs() + LOCK_LIFE_MS };
    const entry = await state.put({ id: LOCK_ID, kind: 'lock', record }, expected, signal);
    return entry === 'conflict' ? undefined : entry.version;
  }

  async function acquire(signal?: AbortSignal): Promise<StateVersion> {
    let expected: StateVersion | null = null;
    for (;;) {
      // before any read: a write waits for the primary of an index that was created this moment, a read fails
      const version = await write(expected, signal);
      if (version !== undefined) return version;
      expected = await freed(signal);
    }
  }

  /** Waits until the lock is not held, or held no longer; the version to take it over from. */
  async function freed(signal?: AbortSignal): Promise<StateVersion | null> {
    let seen: { readonly version: StateVersion | null; readonly sinceMs: number } | undefined;
    for (;;) {
      const held = await state.get(LOCK_ID, signal);
      const version = held?.version ?? null;
      if (seen?.version !== version) seen = { version, sinceMs: clock.monotonicMs() };
      // unchanged for its whole life is expired too, whatever the holder's clock said
      if (isFree(held) || clock.monotonicMs() - seen.sinceMs >= LOCK_LIFE_MS) return version;
      await clock.sleep(POLL_MS, signal);
    }
  }

  function isFree(held: StateEntry | undefined): boolean {
    const parsed = lockSchema.safeParse(held?.record);
    return !parsed.success || parsed.data.expiresAtMs <= clock.nowMs();
  }

  return async function withLock(work: (keep: () => Promise<void>) => Promise<void>, signal?: AbortSignal): Promise<void> {
    let version = await acquire(signal);
    let renewedAtMs = clock.monotonicMs();
    const keep = async (): Promise<void> => {
      if (clock.monotonicMs() - renewedAtMs < RENEW_AFTER_MS) return;
      // lost to another worker: it does the same work, so going on is harmless
      version = (await write(version, signal)) ?? version;
      renewedAtMs = clock.monotonicMs();
    };
    try {
      await work(keep);
    } finally {
      // without the signal: a worker that is told to stop leaves no lock behind. If it fails, the lock expires
      await state.remove(LOCK_ID, version).catch(() => undefined);
    }
  };
}
