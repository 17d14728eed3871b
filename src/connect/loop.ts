/**
 * The loop by which AWS is changed: it reads, makes the first change, and reads again, until nothing differs. So it does not matter
 * where an earlier pass ended, or was killed: AWS itself is what has been done. One pass lasts at most 20 s,
 * and a caller repeats it until it is done.
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
import { REGISTRY_TAG } from './names.rules.ts';
import type { ConnectionSpec } from './connection.rules.ts';
import type { Observed } from './parts.rules.ts';
import type { Change } from './plan.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { WithPorts } from '../store/store.ts';
import type { Lease, TakeLease } from '../store/lease.ts';
import { existing } from './sources/look.ts';

/** Below the 30 s after which the listener ends an operation. */
const PASS_MS = 20_000;
/** A bucket has at most seven parts. Each round makes one, or waits. */
const ROUNDS_MAX = 20;
/** The waits of a write of the notification, and its requests. */
const NOTIFICATION_MS = 10_000;
/** What keeps AWS from taking a write, or from showing it, is over within seconds. */
export const RETRY_MS = 2_000;
/** No answer, or one that asks for a later try. */
const PASSING: ReadonlySet<FaultCode> = new Set(['s3.unavailable', 's3.throttled', 'connect.unavailable']);
/** Others hold the shared lease for a second or two. */
const LOOK_MS = 100;
/** 8 s, which leave a pass the time for a notification. Who waits longer repeats the request. */
const LOOKS_MAX = 80;

/** What one look has found. */
export interface Seen {
  readonly observed: Observed;
  /** What is left, in its order. */
  readonly changes: readonly Change[];
}

interface Steps<Found extends Seen> {
  readonly look: () => Promise<Found>;
  /** Throws what keeps the changes from being made. */
  readonly check?: (seen: Found) => void;
  /** Stores what is about to be made. */
  readonly begin?: (seen: Found, change: Change) => Promise<void>;
}

/** The pass ended before there was nothing left to do. */
export interface Waiting {
  readonly waitingFor: string;
}

/** Answers the look that found nothing to do. Throws what AWS refuses for good, and `connect.busy` if another process has taken the lease. */
export type Run = <Found extends Seen>(steps: Steps<Found>) => Promise<Found | Waiting>;

interface LoopParts extends WithPorts<'clock'> {
  readonly takeLease: TakeLease;
}

interface Turn {
  readonly leases: readonly Lease[];
  readonly endsMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Works under the leases for at most 20 s; `held` if another process has them. */
export async function underLease<Result>(
  parts: LoopParts,
  { bucket, specs }: { readonly bucket: string; readonly specs: readonly Pick<ConnectionSpec, 'topicArn' | 'trailArn'>[] },
  signal: AbortSignal | undefined,
  work: (run: Run) => Promise<Result>,
): Promise<Result | 'held'> {
  const endsMs = parts.clock.monotonicMs() + PASS_MS;
  const isShared = specs.some(({ topicArn, trailArn }) => topicArn !== undefined || trailArn !== undefined);
  const leases: Lease[] = [];
  try {
    for (const take of [() => parts.takeLease(`connection:${bucket}`, signal), ...(isShared ? [() => takeShared(parts, signal)] : [])]) {
      const lease = await take();
      if (lease === undefined) return 'held';
      leases.unshift(lease);
    }
    return await work((steps) => runPass(parts, { leases, endsMs, signal }, steps));
  } finally {
    for (const lease of leases) await lease.release();
  }
}

async function takeShared({ takeLease, clock }: LoopParts, signal: AbortSignal | undefined): Promise<Lease | undefined> {
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const lease = await takeLease('connections', signal);
    if (lease !== undefined) return lease;
    await clock.sleep(LOOK_MS, signal);
  }
  return undefined;
}

async function runPass<Found extends Seen>(parts: LoopParts, turn: Turn, steps: Steps<Found>): Promise<Found | Waiting> {
  const { clock } = parts;
  let made: Change | undefined;
  for (let round = 0; round < ROUNDS_MAX && clock.monotonicMs() < turn.endsMs; round += 1) {
    const seen = await steps.look();
    const [change] = seen.changes;
    if (made !== undefined && isShownLate(made, seen)) {
      // each further write would be one more document while AWS only shows it late
      made = undefined;
      await clock.sleep(RETRY_MS, turn.signal);
      continue;
    }
    steps.check?.(seen);
    if (change === undefined) return seen;
    const begin = async (): Promise<void> => steps.begin?.(seen, change);
    const ended = await makeOne(parts, turn, change, begin);
    if (typeof ended === 'object') return ended;
    made = ended === 'made' ? change : undefined;
  }
  return { waitingFor: 'AWS to show the change' };
}

/** Makes one part, unless AWS may take it later: what is there must be read first then. */
async function makeOne(parts: LoopParts, turn: Turn, change: Change, begin: () => Promise<void>): Promise<'made' | 'refused' | Waiting> {
  const { leases, endsMs, signal } = turn;
  if (change.part === 'notification' && parts.clock.monotonicMs() + NOTIFICATION_MS > endsMs) return { waitingFor: 'the notification' };
  await begin();
  for (const lease of leases) if (!(await lease.renew())) throw busy();
  try {
    return (await change.make(signal)) === 'waiting' ? { waitingFor: 'S3 to show the notification' } : 'made';
  } catch (error) {
    if (!mayPass(error)) throw error;
    return (await outwait(parts, turn, error)) ?? 'refused';
  }
}

/** Whether what AWS refused may be tried again in this pass. */
function mayPass(error: unknown): boolean {
  if (error instanceof FaultError) return PASSING.has(error.code);
  // S3 validates a destination by the policies that it knows, which may be a minute old
  return isBusy(error) || (error instanceof RequestError && error.code === 'connect.destination');
}

function isBusy(error: unknown): boolean {
  return error instanceof RequestError && error.code === 'connect.busy';
}

async function outwait({ clock }: LoopParts, { endsMs, signal }: Turn, error: unknown): Promise<Waiting | undefined> {
  if (clock.monotonicMs() + RETRY_MS <= endsMs) {
    await clock.sleep(RETRY_MS, signal);
    return undefined;
  }
  if (!isBusy(error)) throw error;
  return { waitingFor: 'AWS to accept what it refuses now' };
}

/** Whether AWS does not show what was just made: it is missing, or it is a rule that has no tag of an owner yet. */
function isShownLate(made: Change, { changes: [change], observed }: Seen): boolean {
  if (change?.part === made.part && change.name === made.name) return true;
  const rule = existing(observed.rule);
  return made.part === 'rule' && rule !== undefined && rule.tags[REGISTRY_TAG] === undefined;
}

export function busy(): RequestError {
  return new RequestError('connect.busy', 'another process is changing connections: repeat the request');
}
