/** The attempts that wait for open circuits: which of them goes first, and what an attempt needs and has. */
import type { Clock } from '../process/clock.ts';
import type { CircuitLevel } from './circuit.ts';

export type CircuitId = 'cluster' | `${Exclude<CircuitLevel, 'cluster'>} ${string}`;

/** The permits that an attempt has in open circuits. It gives them back when it has ended, however it ended. */
export interface Permit {
  readonly ids: readonly CircuitId[];
  leave(): void;
}

/** What an attempt has while none of the circuits that it needs is open. */
export const NO_PERMIT: Permit = { ids: [], leave: () => undefined };

/** What an attempt needs, and whether it is the first for its key since it began to wait. */
export interface Attempt {
  readonly ids: readonly CircuitId[];
  readonly isNewKey: boolean;
}

interface Waiter {
  /** The number of its arrival. */
  readonly order: number;
  readonly resolve: (permit: Permit) => void;
}

/** The attempts that need the same: if one of them may not begin, none may. */
interface AttemptGroup extends Attempt {
  /** In the order in which they came. */
  readonly waiters: Set<Waiter>;
}

/** More failures than open any circuit say no more. */
const FAILURES_MAX = 5;

/** What goes first has the lowest rank. */
function rankOf({ ids, isNewKey }: Attempt, { open, failuresOf }: Pick<LineDependencies, 'open' | 'failuresOf'>): number {
  const openCount = ids.filter((id) => open.has(id)).length;
  const failures = Math.min(FAILURES_MAX, Math.max(0, ...ids.filter((id) => !open.has(id)).map(failuresOf)));
  return 2 * (openCount * (FAILURES_MAX + 1) + failures) + (isNewKey ? 0 : 1);
}

/** When the first of the group came. */
function orderOf({ waiters: [first] }: AttemptGroup): number {
  return first?.order ?? Infinity;
}

/**
 * Whether an attempt that needs these circuits says nothing about the circuit of its endpoint (`id`) if it fails: the circuit of its
 * own bucket, or of the bucket's enrichment, is open too, and explains the failure.
 */
export function isExplained(id: CircuitId, ids: readonly CircuitId[], open: Pick<ReadonlySet<CircuitId>, 'has'>): boolean {
  return id.startsWith('endpoint ') && ids.some((each) => /^(bucket|enrichment) /.test(each) && open.has(each));
}

export interface LineDependencies {
  readonly clock: Clock;
  readonly open: ReadonlySet<CircuitId>;
  /** How many requests in a row have failed for what the circuit stands for, whether it is open or not. */
  readonly failuresOf: (id: CircuitId) => number;
  readonly take: (attempt: Attempt) => Permit | undefined;
  /** Called when no other attempt may begin now, with the circuits that are waited for. */
  readonly afterRound: (awaited: ReadonlySet<CircuitId>) => void;
}

/**
 * The attempts that wait. In each round those go that may. First go those that fewest circuits hold back, since their attempts
 * say most about an outer circuit; of these those whose bucket has failed least, because a bucket that fails takes several trials
 * until its own circuit opens, and each may hang; and of these the new keys. A round costs what it lets go, not what waits: each
 * message of a bucket that is not served begins one, and thousands may wait.
 */
export function createWaitingLine({ clock, open, failuresOf, take, afterRound }: LineDependencies) {
  const groups = new Map<string, AttemptGroup>();
  let isRoundDue = false;
  let arrivals = 0;

  function awaited(): ReadonlySet<CircuitId> {
    const waiting = [...groups.values()].filter(({ waiters }) => waiters.size > 0);
    return new Set(waiting.flatMap(({ ids }) => ids.filter((id) => !isExplained(id, ids, open))));
  }

  /** Returns the function that leaves the line. */
  function enter({ ids, isNewKey }: Attempt, resolve: (permit: Permit) => void): () => void {
    const name = `${ids.join(' ')} ${isNewKey}`;
    const group = groups.get(name) ?? { ids, isNewKey, waiters: new Set() };
    groups.set(name, group);
    arrivals += 1;
    const waiter = { order: arrivals, resolve };
    group.waiters.add(waiter);
    return () => {
      group.waiters.delete(waiter);
      if (group.waiters.size === 0 && groups.get(name) === group) groups.delete(name);
    };
  }

  function round(): void {
    const ranks = Map.groupBy(groups.values(), (group) => rankOf(group, { open, failuresOf }));
    for (const [, alike] of [...ranks].sort(([a], [b]) => a - b)) letGo(alike);
    afterRound(awaited());
    isRoundDue = false;
  }

  /** Lets those go that may, the earliest first, until none of them may. */
  function letGo(alike: readonly AttemptGroup[]): void {
    let left = alike;
    while (left.length > 0) {
      const next = left.reduce((a, b) => (orderOf(b) < orderOf(a) ? b : a));
      const [waiter] = next.waiters;
      const permit = waiter === undefined ? undefined : take(next);
      if (waiter !== undefined && permit !== undefined) {
        next.waiters.delete(waiter);
        waiter.resolve(permit);
      } else left = left.filter((group) => group !== next);
    }
  }

  /** Begins a round soon, once for all that happens until then. */
  function startRound(): void {
    if (isRoundDue || (groups.size === 0 && open.size === 0)) return;
    isRoundDue = true;
    queueMicrotask(round);
  }

  /** Waits until the attempt has its permits. Resolves to undefined after `forMs`; rejects with the signal's reason. */
  async function wait(
    attempt: Attempt,
    { forMs, signal }: { readonly forMs: number; readonly signal: AbortSignal },
  ): Promise<Permit | undefined> {
    signal.throwIfAborted();
    const ended = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    let given: Permit | undefined;
    const go = (permit: Permit): void => {
      given = permit;
      resolve();
    };
    const leaveLine = enter(attempt, go);
    startRound();
    const timeout = clock.sleep(forMs, AbortSignal.any([signal, ended.signal]));
    try {
      await Promise.race([promise, timeout]);
      // a permit that was given as the time ended is a permit
      return given;
    } catch (error) {
      given?.leave();
      throw error;
    } finally {
      leaveLine();
      ended.abort(new Error('the wait is over'));
      timeout.catch(() => undefined);
    }
  }

  return { wait, startRound };
}
