/**
 * Leases let one process at a time do a piece of work. A lease is a record with a random name that its holder keeps renewing.
 * No two machines' clocks are compared: another process takes the lease once it has seen the record unchanged for the lease's
 * whole life by its own steady clock, and it swaps the record at the version that it saw. The holder measures the life with its
 * monotonic clock, which never runs behind the steady one.
 */
import { LRUCache } from 'lru-cache';
import { randomUUID } from 'node:crypto';
import PQueue from 'p-queue';
import { z } from 'zod';
import type { Clock } from '../process/clock.ts';
import type { Listed, StateEntry, StateVersion, WithPorts } from './store.ts';

/** How long a lease lives after its last renewal: what the work of a process that was killed waits for. */
export const LEASE_MS = 45_000;
/** Two renewals may fail before the lease ends. */
export const RENEW_MS = 15_000;
/** From one attempt to renew that failed to the next. */
const RETRY_MS = 5_000;
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

const claimedSchema = z.object({ claim: claimSchema.optional() });

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
    const holder = randomUUID();
    const taken = await state.put({ id, kind: 'lock', record: { claim: { holder, renewals: 0 } } }, current?.version ?? null, signal);
    if (taken === 'conflict') return undefined;
    const held = holdRecord({ state, clock }, taken, atMs, {
      read: ({ record }) => claimedSchema.parse(record),
      isOurs: ({ claim }) => claim?.holder === holder,
      renewed: (record) => ({ claim: { holder, renewals: (record.claim?.renewals ?? 0) + 1 } }),
      written: (record) => record,
    });
    return {
      ...held,
      async release() {
        await held.release();
        // where this fails, the lease ends by itself
        if (!held.lost.aborted) await state.remove(id, held.version()).catch(() => undefined);
      },
    };
  };
}

interface Holding<Record> {
  /** The record in the entry. Throws for one that cannot be read. */
  readonly read: (entry: StateEntry) => Record;
  /** Whether this process holds it: it does until it has given it back, or another one has taken it. */
  readonly isOurs: (record: Record) => boolean;
  /** The record as it is stored next: with a renewed lease, unless it is given back with this. */
  readonly renewed: (record: Record) => Record;
  /** What is put in the place of the entry. */
  readonly written: (record: Record, before: StateEntry) => unknown;
}

/** Holds the record of `entry`, whose lease was stored at `atMs` (monotonic) or later. */
export function holdRecord<Record>(
  { state, clock }: WithPorts<'state' | 'clock'>,
  entry: StateEntry,
  atMs: number,
  { read, isOurs, renewed, written }: Holding<Record>,
) {
  const { id, kind } = entry;
  const lost = new AbortController();
  const released = new AbortController();
  /** One swap at a time: each needs the version that the swap before it stored. */
  const swaps = new PQueue({ concurrency: 1 });
  /** The entry in the store and its record, as far as this process knows. */
  let current = entry;
  let held = read(entry);
  let endsAtMs = atMs + LEASE_MS;

  function lose(reason: string): false {
    lost.abort(new Error(`${id} was lost: ${reason}`));
    return false;
  }

  async function put(next: (record: Record) => Record, listed: Listed): Promise<'stored' | 'same' | 'conflict'> {
    const changed = next(held);
    if (changed === held) return 'same';
    const record = renewed(changed);
    const stored = await state.put({ id, kind, record: written(record, current), listed }, current.version);
    if (stored === 'conflict') return 'conflict';
    [current, held] = [stored, record];
    return 'stored';
  }

  /** Whether this process holds the record as it is stored now. */
  async function readAgain(): Promise<boolean> {
    const found = await state.get(id);
    if (found === undefined || !isOurs(read(found))) return false;
    [current, held] = [found, read(found)];
    return true;
  }

  async function swap(next: (record: Record) => Record, listed: Listed): Promise<boolean> {
    if (lost.signal.aborted || !isOurs(held)) return false;
    const fromMs = clock.monotonicMs();
    if (fromMs >= endsAtMs) return lose(LATE);
    let stored = await put(next, listed);
    // another part of the record was changed, or a renewal that timed out was stored all the same
    if (stored === 'conflict' && (await readAgain())) stored = await put(next, listed);
    if (stored === 'conflict') return lose('another process has it');
    if (stored === 'stored') endsAtMs = fromMs + LEASE_MS;
    return !lost.signal.aborted;
  }

  const renewedMs = (): number => endsAtMs - LEASE_MS;
  const renew = (): Promise<boolean> => swaps.add(async () => !released.signal.aborted && swap((record) => ({ ...record }), 'soon'));

  /** Renews the lease unless a change has. A fault is tried again until the lease has ended. */
  async function renewOften(): Promise<void> {
    while (!released.signal.aborted && !lost.signal.aborted) {
      await clock.sleep(Math.max(RETRY_MS, renewedMs() + RENEW_MS - clock.monotonicMs()), released.signal);
      if (clock.monotonicMs() - renewedMs() >= RENEW_MS) await renew().catch(() => undefined);
    }
  }

  /** An answer to a renewal may take longer than the lease lives. */
  async function loseInTime(): Promise<void> {
    const ended = AbortSignal.any([released.signal, lost.signal]);
    for (let leftMs = endsAtMs - clock.monotonicMs(); leftMs > 0; leftMs = endsAtMs - clock.monotonicMs()) await clock.sleep(leftMs, ended);
    lose(LATE);
  }

  return {
    lost: lost.signal,
    /** As last stored or read by this process. */
    record: (): Record => held,
    version: (): StateVersion => current.version,
    renew,
    /** Stores what `next` returns, which may be called twice; nothing if that is the same. False: the record is lost. Throws the store's fault; then the change may be stored or not. */
    change: (next: (record: Record) => Record, listed: Listed = 'soon'): Promise<boolean> => swaps.add(() => swap(next, listed)),
    // both reject when the lease is released, which is not a failure
    keep: () => void Promise.all([renewOften(), loseInTime()]).catch(() => undefined),
    /** Nothing renews the lease any more. */
    async release() {
      released.abort(new Error(`${id} was released`));
      await swaps.onIdle();
    },
  };
}

const LATE = 'its lease could not be renewed in time';
