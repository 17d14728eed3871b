/**
 * The loop that changes AWS: it reads, makes the first change, and reads again, until nothing differs. AWS is the only record of what
 * was done, so it does not matter where an earlier pass ended or was killed. A caller repeats a pass until it is done.
 *
 *   look ──► nothing to do: done
 *     ▲ └──► first change ──┐
 *     └─────────────────────┘
 *
 * No write is repeated as it was: if AWS refused it because another change is under way, the document is out of date; if its answer was
 * lost, AWS may have stored it. The pass waits and looks again to see what is left to write.
 *
 * Each bucket has its own lease, so several can be connected at the same time. Buckets may share a named topic or a trail, and only all
 * buckets' records say which of them need it: such changes take one more lease, always as the second.
 */
import { FaultError, type FaultCode } from '../base/fault.ts';
import { RequestError } from '../base/request-error.ts';
import type { ConnectionSpec } from '../records/bucket.ts';
import type { Lease, TakeLease } from '../store/lease.ts';
import type { WithPorts } from '../store/store.ts';
import type { Change } from './plan.rules.ts';

/** No change begins later: the longest one, a notification's, takes up to 10 s, and the listener ends an operation after 30 s. */
const PASS_MS = 10_000;
/** A bucket has at most seven parts. Each round makes one part, or waits. */
const ROUNDS_MAX = 20;
/** Whatever keeps AWS from accepting a write, or from showing it, ends within seconds. */
export const RETRY_MS = 2_000;
/** No answer, or one that asks for a later attempt. S3 validates a destination by policies that may be a minute old. */
const PASSING: ReadonlySet<string> = new Set<FaultCode | RequestError['code']>([
  's3.unavailable',
  's3.throttled',
  'connect.unavailable',
  'connect.busy',
  'connect.destination',
]);

/** What one look found: the remaining changes, in their order. */
interface Seen {
  readonly changes: readonly Change[];
}

/** The pass ended before there was nothing left to do. */
export interface Waiting {
  readonly waitingFor: string;
}

/**
 * Resolves with the look that found nothing to do. `begin` stores what is about to be made, or throws what prevents it. Throws what AWS
 * refuses permanently, and `connect.busy` if another process has taken the lease.
 */
export type Run = <Found extends Seen>(...steps: Steps<Found>) => Promise<Found | Waiting>;

type Steps<Found extends Seen> = readonly [look: () => Promise<Found>, begin?: (seen: Found, change: Change) => Promise<void>];

interface LoopParts extends WithPorts<'clock'> {
  readonly takeLease: TakeLease;
}

/** A pass's leases and its end. */
interface Turn extends WithPorts<'clock'> {
  readonly leases: readonly Lease[];
  readonly endsMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Works for one pass under the bucket's lease, and the shared one if its specs need it; `held` if another process has either. */
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
    // AWS may only show it late: writing again would replace the document once more
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

/** The change that was made, or why AWS may accept it later, after another look. */
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
  return new RequestError('connect.busy', 'another process is changing connections: repeat this in a minute');
}
