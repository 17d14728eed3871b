/**
 * Leases: of all processes, one at a time does a piece of work. A lease is a record with a random name that its holder renews.
 * No two machines' clocks are compared: another process takes the lease once it has watched the record stay unchanged for the
 * lease's whole life by its own steady clock, and it swaps the record at the version that it watched. The holder counts the life by
 * its monotonic clock, which never runs behind the steady one.
 */
import { LRUCache } from 'lru-cache';
import { randomUUID } from 'node:crypto';
import PQueue from 'p-queue';
import { z } from 'zod';
import type { Clock } from '../ports/clock.ts';
import type { StateEntry, StateVersion } from '../ports/state.ts';
import type { WithPorts } from '../ports/ports.ts';

/** How long a lease lives after its last renewal: what the work of a process that was killed waits for. */
export const LEASE_MS = 45_000;
/** Two renewals may fail before the lease ends. */
export const RENEW_MS = 15_000;
/** A watcher that did not look for longer has stood still itself, perhaps with the holder, and begins its watch again. Schedules are looked at once a minute. */
const LOOK_GAP_MAX_MS = 120_000;
/** Records that one process watches: as many as jobs may be stored. The oldest watch begins again, which only delays a takeover. */
const WATCHED_MAX = 2_000;

/** Returns for how long this process has watched the record be at this version, in ms. 0 at the first look. */
export type Watch = (id: string, version: string) => number;

/** Creates the memory of what a process watches. */
export function createWatch(clock: Pick<Clock, 'steadyMs'>): Watch {
  const watched = new LRUCache<string, { readonly version: string; readonly sinceMs: number; readonly lookedAtMs: number }>({
    max: WATCHED_MAX,
  });
  return function watchedMs(id, version) {
    const nowMs = clock.steadyMs();
    const before = watched.get(id);
    const isSame = before?.version === version && nowMs - before.lookedAtMs <= LOOK_GAP_MAX_MS;
    const sinceMs = isSame ? before.sinceMs : nowMs;
    watched.set(id, { version, sinceMs, lookedAtMs: nowMs });
    return nowMs - sinceMs;
  };
}

/** The claim in a record: the random name of its holder, and how often it was renewed. */
export const claimSchema = z.object({ holder: z.string(), renewals: z.number() });
type Claim = z.infer<typeof claimSchema>;

const claimedSchema = z.looseObject({ claim: claimSchema });

export interface Lease {
  /** Aborted when the lease is lost: another process has it, or it could not be renewed for its whole life. */
  readonly lost: AbortSignal;
  /** Renews the lease, right before a change that no other process may make at the same time. False: it is lost. Throws the store's fault. */
  renew(): Promise<boolean>;
  /** Renews the lease again and again, for work that may take longer than a lease lives. */
  keep(): void;
  /** Gives the lease back. */
  release(): Promise<void>;
}

/** Takes the lease of this name; undefined while another process has it. Throws the store's fault. */
export type TakeLease = (name: string, signal?: AbortSignal) => Promise<Lease | undefined>;

/** Creates the function. One for the whole process, so that each call continues the watch of the call before it. */
export function createTakeLease({ state, clock }: WithPorts<'state' | 'clock'>): TakeLease {
  const watch = createWatch(clock);
  return async function takeLease(name, signal) {
    const id = `lease:${name}`;
    const atMs = clock.monotonicMs();
    const current = await state.get(id, signal);
    if (current !== undefined && watch(id, current.version) < LEASE_MS) return undefined;
    const claim: Claim = { holder: randomUUID(), renewals: 0 };
    const taken = await state.put({ id, kind: 'lock', record: { claim } }, current?.version ?? null, signal);
    if (taken === 'conflict') return undefined;
    const held = holdClaim({ state, clock }, taken, claim, atMs);
    return {
      ...held,
      async release() {
        await held.release();
        // where this fails, the lease ends by itself
        const version = held.version();
        if (!held.lost.aborted) await state.remove(id, version).catch(() => undefined);
      },
    };
  };
}

/** The lease that is the claim in the record of `entry`, which was stored at `atMs` (monotonic) or later. What else is in the record stays; the release leaves the claim. */
export function holdClaim({ state, clock }: WithPorts<'state' | 'clock'>, entry: StateEntry, { holder }: Claim, atMs: number) {
  const { id, kind } = entry;
  const lost = new AbortController();
  const released = new AbortController();
  /** One swap at a time: each needs the version that the swap before it stored. */
  const swaps = new PQueue({ concurrency: 1 });
  let current = entry;
  let endsAtMs = atMs + LEASE_MS;

  function lose(reason: string): false {
    lost.abort(new Error(`the lease ${id} ${reason}`));
    return false;
  }

  async function put(found: StateEntry | undefined): Promise<StateEntry | 'conflict'> {
    const parsed = claimedSchema.safeParse(found?.record);
    if (found === undefined || parsed.data?.claim.holder !== holder) return 'conflict';
    const record = { ...parsed.data, claim: { holder, renewals: parsed.data.claim.renewals + 1 } };
    return state.put({ id, kind, record }, found.version);
  }

  async function renew(): Promise<boolean> {
    if (lost.signal.aborted || released.signal.aborted) return false;
    const fromMs = clock.monotonicMs();
    if (fromMs >= endsAtMs) return lose('was not renewed in time');
    let stored = await put(current);
    // another part of the record was changed, or a renewal that timed out was stored all the same
    if (stored === 'conflict') stored = await put(await state.get(id));
    if (stored === 'conflict') return lose('was taken by another process');
    current = stored;
    endsAtMs = fromMs + LEASE_MS;
    return !lost.signal.aborted;
  }

  async function renewOften(): Promise<void> {
    while (!released.signal.aborted && !lost.signal.aborted) {
      await clock.sleep(RENEW_MS, released.signal);
      // a fault is tried again until the lease has ended
      await swaps.add(renew).catch(() => undefined);
    }
  }

  /** An answer to a renewal may take longer than the lease lives. */
  async function loseInTime(): Promise<void> {
    const ended = AbortSignal.any([released.signal, lost.signal]);
    for (let leftMs = endsAtMs - clock.monotonicMs(); leftMs > 0; leftMs = endsAtMs - clock.monotonicMs()) await clock.sleep(leftMs, ended);
    lose('was not renewed in time');
  }

  return {
    lost: lost.signal,
    version: (): StateVersion => current.version,
    renew: (): Promise<boolean> => swaps.add(renew),
    // both reject when the lease is released, which is not a failure
    keep: () => void Promise.all([renewOften(), loseInTime()]).catch(() => undefined),
    async release() {
      released.abort(new Error(`the lease ${id} was released`));
      await swaps.onIdle();
    },
  };
}
