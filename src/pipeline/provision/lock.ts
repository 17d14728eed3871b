/**
 * The leases under which AWS is changed. Each bucket has one, so that several are connected at the same time. What buckets share
 * (topics, policies, subscriptions, rules, selectors) are whole documents, and who needs them is read from the records of all
 * connections: one process at a time writes them, or adds and removes who needs them, under a lease of the whole installation.
 * The lease of the bucket is always taken first.
 */
import PQueue from 'p-queue';
import { RequestError } from '../../domain/request-error.ts';
import { createTakeLease, type Lease } from '../records/lease.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Others hold the shared lease for a second or two. */
const LOOK_MS = 250;
/** 20 s: the length of a pass. */
const LOOKS_MAX = 80;
/** How long the turns of one process may follow each other while another process waits. A lease lives much longer. */
const KEPT_MS = 5_000;

export interface Lock {
  /** Renews the leases that are held. Throws `connect.busy` if another process has taken one. */
  keep(): Promise<void>;
  /** Runs work under the shared lease, for which it waits until the pass ends; `held` if it does not get it. */
  shared<Result>(work: () => Promise<Result>): Promise<Result | 'held'>;
}

export interface PassEnd {
  readonly endsMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Runs work under the lease of the bucket; `held` if another process has it. */
export type UnderLock = <Result>(bucket: string, end: PassEnd, work: (lock: Lock) => Promise<Result>) => Promise<Result | 'held'>;

export function createConnectLock({ state, clock }: WithPorts<'state' | 'clock'>): UnderLock {
  const takeLease = createTakeLease({ state, clock });
  /** Of this process one waits at the store, and the others in their order. */
  const turns = new PQueue({ concurrency: 1 });
  /** What one turn leaves to the next one: each write of the store that is spared shortens the way of all that wait. */
  let kept: { readonly lease: Lease; readonly sinceMs: number } | undefined;

  async function takeShared({ endsMs, signal }: PassEnd): Promise<typeof kept> {
    for (let look = 0; look < LOOKS_MAX && clock.monotonicMs() < endsMs; look += 1) {
      const lease = await takeLease('connections', signal);
      if (lease !== undefined) return { lease, sinceMs: clock.monotonicMs() };
      await clock.sleep(LOOK_MS, signal);
    }
    return undefined;
  }

  async function giveBack({ lease, sinceMs }: NonNullable<typeof kept>, hasFailed: boolean): Promise<void> {
    const isKept = turns.size > 0 && !hasFailed && !lease.lost.aborted && clock.monotonicMs() - sinceMs < KEPT_MS;
    if (isKept) {
      kept = { lease, sinceMs };
      return;
    }
    await lease.release();
    // another process that waits looks meanwhile
    if (turns.size > 0) await clock.sleep(2 * LOOK_MS);
  }

  return async function underLock(bucket, end, work) {
    const own = await takeLease(`connection:${bucket}`, end.signal);
    if (own === undefined) return 'held';
    const held = new Set([own]);

    async function turn<Result>(sharedWork: () => Promise<Result>): Promise<Result | 'held'> {
      const taken = kept ?? (await takeShared(end));
      kept = undefined;
      if (taken === undefined) return 'held';
      let hasFailed = true;
      held.add(taken.lease);
      try {
        const result = await sharedWork();
        hasFailed = false;
        return result;
      } finally {
        held.delete(taken.lease);
        await giveBack(taken, hasFailed);
      }
    }

    try {
      return await work({
        async keep() {
          for (const lease of held)
            if (!(await lease.renew()))
              throw new RequestError('connect.busy', 'another process changes connections now: repeat the request');
        },
        shared: (sharedWork) => turns.add(() => turn(sharedWork)),
      });
    } finally {
      await own.release();
    }
  };
}
