import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { StateEntry, StateStore, StateVersion } from '../../pipeline/ports/state.ts';

/** The id of the lock's record in the state index. */
const LOCK_ID = 'lock:index-setup';
/** The lock expires after this time, so that a holder that crashed does not keep it. */
const LOCK_LIFE_MS = 60_000;
/** A third of the lock's life, so that two renewals may fail. */
const RENEW_AFTER_MS = 20_000;
/** The time between two reads of a waiting worker. A whole fleet that starts at the same time sends only a few requests a second. */
const POLL_MS = 500;

const lockSchema = z.object({ holder: z.string(), expiresAtMs: z.number() });

interface LockDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
}

/**
 * Creates a function that runs work under the setup lock, as soon as no other worker holds it. The work must call `keep`
 * between its parts, which renews the lock when necessary. The work must be idempotent: clocks that differ by a minute can
 * let two workers hold the lock at the same time.
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
      // a write comes before any read: if the index was created just now, a write waits for its primary, but a read fails
      const version = await write(expected, signal);
      if (version !== undefined) return version;
      expected = await freed(signal);
    }
  }

  /** Waits until the lock is free or has expired. Returns the version that the next write must replace; null if there is no record. */
  async function freed(signal?: AbortSignal): Promise<StateVersion | null> {
    let seen: { readonly version: StateVersion | null; readonly sinceMs: number } | undefined;
    for (;;) {
      const held = await state.get(LOCK_ID, signal);
      const version = held?.version ?? null;
      if (seen?.version !== version) seen = { version, sinceMs: clock.monotonicMs() };
      // a lock that did not change for its whole life has expired too, even if the holder's clock is wrong
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
      // if another worker has taken the lock, it does the same work, so continuing is harmless
      version = (await write(version, signal)) ?? version;
      renewedAtMs = clock.monotonicMs();
    };
    try {
      await work(keep);
    } finally {
      // without the signal, so that a worker that is stopping does not leave the lock behind; if this fails, the lock expires
      await state.remove(LOCK_ID, version).catch(() => undefined);
    }
  };
}
