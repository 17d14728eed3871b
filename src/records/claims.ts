/**
 * How a job finds its process. A job that has something to do has a time at which it is due. Processes search for what is due, and
 * one of them claims it by compare-and-swap:
 *
 *   due ──claim──► held (a lease; due again in 20 s, which each change moves on) ──given back──► due at its time │ not due any more
 *    ▲               │
 *    └── unchanged for 60 s: its process is dead, and one more lease ended without progress
 *
 * No two clocks are compared. A process that finds a lease watches that it does not change, by the watcher's steady clock.
 */
import { z } from 'zod';

/** The holder of the job. Its name is another one for each claim. */
export const leaseSchema = z.object({ worker: z.string() });

/** A record that processes claim. */
export interface Claimable {
  /** From when on a process may claim it; absent: nothing is to be done. The state index searches by it. */
  readonly dueAtMs?: number | undefined;
  readonly lease?: z.infer<typeof leaseSchema> | undefined;
  /** How many leases in a row ended without progress. */
  readonly fruitless?: number | undefined;
}

/** Three leases or attempts in a row without progress fail the job. */
export const WITHOUT_PROGRESS_MAX = 3;
/** A held job is due again after this time: a renewal that is late shows that its process may be dead. */
const HELD_MS = 20_000;
/** A lease that has not changed for this long is over. What its process does last may take a moment. */
export const WATCH_MS = 60_000;
/** The longest time for which work is put off. A time further ahead was stored by a clock that is fast, and counts as due. */
export const DUE_AHEAD_MAX_MS = 300_000;

/** The lease and its next time: as claimed, or as renewed. */
export function heldBy(worker: string, nowMs: number): { readonly lease: { readonly worker: string }; readonly dueAtMs: number } {
  return { lease: { worker }, dueAtMs: nowMs + HELD_MS };
}

/** Whether a process may claim the record now, by its clock. */
export function isDue({ dueAtMs }: Pick<Claimable, 'dueAtMs'>, nowMs: number): boolean {
  return dueAtMs !== undefined && (dueAtMs <= nowMs || dueAtMs > nowMs + DUE_AHEAD_MAX_MS);
}

/** What identifies one state of a lease: it changes with each renewal. */
export function leaseName({ lease, dueAtMs = 0 }: Claimable): string | undefined {
  return lease && `${lease.worker} ${dueAtMs}`;
}

/** Why a record cannot be claimed; `taken`: it can, with this number of leases without progress. */
export type Claim =
  | { readonly kind: 'taken'; readonly fruitless: number }
  /** It is not due, because another process was faster, or nothing is to be done. */
  | { readonly kind: 'early' }
  | { readonly kind: 'leased' }
  /** Too many leases in a row ended without progress: the job must fail. */
  | { readonly kind: 'poisonous' };

/** Decides whether the record can be claimed. `isOver`: its lease has not changed for WATCH_MS. The lease of a dead process counts here, so work that kills its process is bounded; a lease that was given back does not count. */
export function claimOf(record: Claimable, nowMs: number, isOver: boolean): Claim {
  const { lease, fruitless = 0 } = record;
  if (!isDue(record, nowMs)) return { kind: 'early' };
  if (lease !== undefined && !isOver) return { kind: 'leased' };
  const leases = fruitless + (lease === undefined ? 0 : 1);
  return leases >= WITHOUT_PROGRESS_MAX ? { kind: 'poisonous' } : { kind: 'taken', fruitless: leases };
}

/** The record without its lease and its time: nothing is to be done until someone makes it due again. */
export function asleep<Record extends Claimable>(record: Record): Omit<Record, 'lease' | 'dueAtMs'> {
  const { lease: _, dueAtMs: __, ...rest } = record;
  return rest;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** How long work waits after a fault of S3 or the index. It has just failed, and live events need it first. */
export const FAULT_WAIT_MS = 15_000;
/** After an hour without an answer: an outage of hours costs a few hundred requests, and its end is noticed within five minutes. */
const LONG_WAIT_MS = 300_000;

/** How long to wait before the next attempt at something that has been refused since then: 15 s within the first minute, then a minute, after an hour five. */
export function waitMs(sinceMs: number, nowMs: number): number {
  const refusedMs = nowMs - sinceMs;
  if (refusedMs < MINUTE_MS) return FAULT_WAIT_MS;
  return refusedMs < HOUR_MS ? MINUTE_MS : LONG_WAIT_MS;
}
