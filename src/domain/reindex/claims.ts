/**
 * How work finds its worker. A job that has something to do, and each of its open ranges, has a time at which it is due. Workers
 * search for what is due, and one of them claims it by compare-and-swap:
 *
 *   due ──claim──► held (a lease; due again in 20 s, which each renewal moves on) ──step ends──► due at its time │ not due any more
 *    ▲               │
 *    └── unchanged for 60 s: its worker is dead, and one more attempt ended without progress
 *
 * No two clocks are compared. A worker that finds a lease watches that it does not change, by the watcher's steady clock.
 */
import { z } from 'zod';

/** The worker that holds the record. The name is another one for each claim. */
export const leaseSchema = z.object({ worker: z.string() });

/** A record that workers claim. */
export interface Claimable {
  /** From when on a worker may claim it; absent: nothing is to be done. The state index searches by it. */
  readonly dueAtMs?: number | undefined;
  readonly lease?: z.infer<typeof leaseSchema> | undefined;
  /** How many attempts in a row ended without progress. */
  readonly fruitless?: number | undefined;
}

/** Three attempts in a row without progress fail the job. */
export const WITHOUT_PROGRESS_MAX = 3;
/** How often a lease is renewed: two renewals may fail. */
export const RENEW_MS = 15_000;
/** A worker that could not renew its lease for this long, by its monotonic clock, gives the record up. */
export const LEASE_MS = 45_000;
/** A held record is due again after this time: a renewal that is late shows that its worker may be dead. */
const HELD_MS = 20_000;
/** A lease that has not changed for this long is over. What its worker does last may take a moment. */
export const WATCH_MS = 60_000;
/** The longest time for which work is put off. A time further ahead was stored by a clock that is fast, and counts as due. */
export const DUE_AHEAD_MAX_MS = 300_000;

/** The lease and its next time: as claimed, or as renewed. */
export function heldBy(worker: string, nowMs: number): { readonly lease: { readonly worker: string }; readonly dueAtMs: number } {
  return { lease: { worker }, dueAtMs: nowMs + HELD_MS };
}

/** Whether a worker may claim the record now, by its clock. */
export function isDue({ dueAtMs }: Claimable, nowMs: number): boolean {
  return dueAtMs !== undefined && (dueAtMs <= nowMs || dueAtMs > nowMs + DUE_AHEAD_MAX_MS);
}

/** What identifies one state of a lease: it changes with each renewal. */
export function leaseName({ lease, dueAtMs = 0 }: Claimable): string | undefined {
  return lease && `${lease.worker} ${dueAtMs}`;
}

/** Why a record cannot be claimed; `taken`: it can, with this number of attempts without progress. */
export type Claim =
  | { readonly kind: 'taken'; readonly fruitless: number }
  /** It is not due, because another worker was faster, or nothing is to be done. */
  | { readonly kind: 'early' }
  | { readonly kind: 'leased' }
  /** Too many attempts in a row ended without progress: the job must fail. */
  | { readonly kind: 'poisonous' };

/** Decides whether the record can be claimed. `isOver`: its lease has not changed for WATCH_MS. The attempt of a dead worker counts here, so a step that kills its process is bounded. */
export function claimOf(record: Claimable, nowMs: number, isOver: boolean): Claim {
  const { lease, fruitless = 0 } = record;
  if (!isDue(record, nowMs)) return { kind: 'early' };
  if (lease !== undefined && !isOver) return { kind: 'leased' };
  const attempts = fruitless + (lease === undefined ? 0 : 1);
  return attempts >= WITHOUT_PROGRESS_MAX ? { kind: 'poisonous' } : { kind: 'taken', fruitless: attempts };
}

/** The record without its lease and its time: nothing is to be done until someone makes it due again. */
export function asleep<Record extends Claimable>(record: Record): Omit<Record, 'lease' | 'dueAtMs'> {
  const { lease: _, dueAtMs: __, ...rest } = record;
  return rest;
}
