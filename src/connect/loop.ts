/**
 * The loop by which AWS is changed: it reads, makes the first change, and reads again, until nothing differs. So it does not matter
 * where an earlier pass ended, or was killed: AWS itself is what has been done. A caller repeats a pass until it is done.
 *
 *   look ──► nothing to do: done
 *     ▲ └──► first change ──┐
 *     └─────────────────────┘
 *
 * Nothing sends a write again as it was: a document that was refused with "another change is under way" is old, and one whose answer
 * was lost may be stored already. A pass waits, looks again, and so finds out what is left to write.
 *
 * Each bucket has a lease, so that several are connected at the same time. What is about a topic that was named, or about a trail,
 * may be about other buckets too, and who needs it is read from the records of all: that is done under one more lease, which is
 * always taken second.
 */
import { FaultError, type FaultCode } from '../base/fault.ts';
import { RequestError } from '../base/request-error.ts';
import type { ConnectionSpec } from '../records/bucket.ts';
import type { Lease, TakeLease } from '../store/lease.ts';
import type { WithPorts } from '../store/store.ts';
import type { Change } from './plan.rules.ts';

/** No change begins later: the longest one, of a notification, takes 10 s when AWS is quick, and the listener ends an operation after 30 s. */
const PASS_MS = 10_000;
/** A bucket has at most seven parts. Each round makes one, or waits. */
const ROUNDS_MAX = 20;
/** What keeps AWS from taking a write, or from showing it, is over within seconds. */
export const RETRY_MS = 2_000;
/** No answer, or one that asks for a later try. S3 validates a destination by the policies that it knows, which may be a minute old. */
const PASSING: ReadonlySet<string> = new Set<FaultCode | RequestError['code']>([
  's3.unavailable',
  's3.throttled',
  'connect.unavailable',
  'connect.busy',
  'connect.destination',
]);

/** What one look has found: what is left, in its order. */
interface Seen {
  readonly changes: readonly Change[];
}

/** The pass ended before there was nothing left to do. */
export interface Waiting {
  readonly waitingFor: string;
}

/**
 * Resolves with the look that found nothing to do. `begin` stores what is about to be made, or throws what keeps it from being made.
 * Throws what AWS refuses for good, and `connect.busy` if another process has taken the lease.
 */
export type Run = <Found extends Seen>(...steps: Steps<Found>) => Promise<Found | Waiting>;

type Steps<Found extends Seen> = readonly [look: () => Promise<Found>, begin?: (seen: Found, change: Change) => Promise<void>];

interface LoopParts extends WithPorts<'clock'> {
  readonly takeLease: TakeLease;
}

/** What a pass works under, and until when. */
interface Turn extends WithPorts<'clock'> {
  readonly leases: readonly Lease[];
  readonly endsMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Works for one pass under the leases of a bucket and of what its specs share; `held` if another process has one of them. */
export async function underLease<Result>(
  { takeLease, clock }: LoopParts,
  { bucket, specs }: { readonly bucket: string; readonly specs: readonly ConnectionSpec[] },
  signal: AbortSignal | undefined,
  work: (run: Run) => Promise<Result>,
): Promise<Result | 'held'> {
  const endsMs = clock.monotonicMs() + PASS_MS;
  const isShared = specs.some(({ topicArn, trailArn }) => topicArn !== undefined || trailArn !== undefined);
  const leases: Lease[] = [];
  try {
    for (const name of [`connection:${bucket}`, ...(isShared ? ['connections'] : [])]) {
      const lease = await takeLease(name, signal);
      if (lease === undefined) return 'held';
      leases.unshift(lease);
    }
    return await work((look, begin) => runPass({ clock, leases, endsMs, signal }, look, begin));
  } finally {
    for (const lease of leases) await lease.release();
  }
}

async function runPass<Found extends Seen>(turn: Turn, ...[look, begin]: Steps<Found>): Promise<Found | Waiting> {
  const { clock, endsMs, signal } = turn;
  let last: Made = {};
  for (let round = 0; round < ROUNDS_MAX && clock.monotonicMs() < endsMs; round += 1) {
    const seen = await look();
    const [change] = seen.changes;
    if (change === undefined) return seen;
    // each further write would be one more document while AWS only shows it late
    if (isSame(last.change, change)) last = {};
    else {
      await begin?.(seen, change);
      const made = await makeOne(turn, change);
      if (made === 'waiting') return { waitingFor: `AWS to show the ${change.part}` };
      last = made;
    }
    if (last.change === undefined) await clock.sleep(RETRY_MS, signal);
  }
  return waitingOf(last);
}

function isSame(made: Change | undefined, { part, name }: Change): boolean {
  return made?.part === part && made.name === name;
}

function waitingOf({ refused }: Made): Waiting {
  if (refused === undefined) return { waitingFor: 'AWS to show the change' };
  if (refused.code === 'connect.busy') return { waitingFor: 'AWS to accept what it refuses now' };
  throw refused;
}

/** The change that was made, or why AWS may take it later: what is there must be read first then. */
interface Made {
  readonly change?: Change;
  readonly refused?: FaultError | RequestError;
}

async function makeOne({ leases, signal }: Turn, change: Change): Promise<Made | 'waiting'> {
  for (const lease of leases) if (!(await lease.renew())) throw busy();
  try {
    return (await change.make(signal)) === 'waiting' ? 'waiting' : { change };
  } catch (error) {
    if ((error instanceof FaultError || error instanceof RequestError) && PASSING.has(error.code)) return { refused: error };
    throw error;
  }
}

export function busy(): RequestError {
  return new RequestError('connect.busy', 'another process is changing connections: repeat the request');
}
