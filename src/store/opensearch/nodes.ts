/**
 * Which node of a cluster a request is sent to, where TALLY_INDEX_URL names several.
 *
 *                       it does not answer
 *         up ─────────────────────────────────────► down
 *          ▲                                          │ a check after 1 s, doubling to 15 s,
 *          │  it answers, with the id of the cluster  │ or when no other node is up
 *          └──────────────────────────────────────────┘
 *
 * A node begins as down, with its check due. A node with the id of another cluster stays down: nothing is written to it. Once all of them
 * have the same other id, the cluster was made again, as after the loss of its disks, and they are up.
 */
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import type { Clock } from '../../process/clock.ts';
import type { Telemetry } from '../../process/telemetry.ts';
import type { Node } from './node.ts';

/** The longest that a check may take. A node that answers takes milliseconds for it, however busy it is. */
const CHECK_TIMEOUT_MS = 3_000;
/** A restarted node is used again soon; one that stays away costs a request each 15 s. */
const CHECK_AFTER = { minMs: 1_000, maxMs: 15_000 };

/** A node, and what is known of it. */
export interface KnownNode {
  readonly node: Node;
  /** Undefined while it is up. */
  down: { readonly reason: string; readonly checkAtMs: number; readonly failures: number } | undefined;
  checking: Promise<boolean> | undefined;
  /** The id of its cluster, as its last check showed it. */
  clusterId: string | undefined;
}

export interface Nodes {
  /** The next node that is up, each in its turn, without those that this request has tried. Undefined if none is left; then {@link Nodes.revive}. */
  next(tried: ReadonlySet<KnownNode>): KnownNode | undefined;
  /** Checks a node that is down and was not tried; resolves with it if it is up then. Undefined if none is left. */
  revive(tried: Set<KnownNode>): Promise<KnownNode | undefined>;
  /** Asks the node whether it answers. Resolves with whether it is up. Never rejects. */
  check(known: KnownNode): Promise<boolean>;
  /** Notes that a request failed on the node. */
  markDown(known: KnownNode, reason: string): void;
  /** Why nodes are down. */
  reasons(): string;
  /** Resolves when all nodes were checked once. Throws `index.foreign-node` if they belong to different clusters. */
  acquainted(): Promise<void>;
}

interface NodesDependencies {
  readonly nodes: readonly Node[];
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly telemetry: Pick<Telemetry, 'warn' | 'info'> | undefined;
  /** Aborted when the client is closed. */
  readonly closed: AbortSignal;
}

const NOT_CHECKED = { reason: 'not checked yet', checkAtMs: 0, failures: 0 };

export function createNodes({ nodes, clock, telemetry, closed }: NodesDependencies): Nodes {
  const known: readonly KnownNode[] = nodes.map((node) => ({ node, down: NOT_CHECKED, checking: undefined, clusterId: undefined }));
  let clusterId: string | undefined;
  let acquaintance: Promise<void> | undefined;
  let turn = 0;

  /** After a check that failed; a failed request only begins that. */
  function stayDown(which: KnownNode, reason: string): void {
    const failures = (which.down?.failures ?? 0) + 1;
    // also if it returns as a member of another cluster
    if (reason !== which.down?.reason) telemetry?.warn('a node of the index store is not used', { node: which.node.name, reason });
    const waitMs = Math.min(CHECK_AFTER.maxMs, CHECK_AFTER.minMs * 2 ** Math.min(failures - 1, 10));
    which.down = { reason, failures, checkAtMs: clock.monotonicMs() + waitMs };
  }

  function markUp(which: KnownNode): void {
    if (which.down !== undefined && which.down.failures > 0)
      telemetry?.info('a node of the index store is used again', { node: which.node.name });
    which.down = undefined;
  }

  function check(which: KnownNode): Promise<boolean> {
    which.checking ??= examine(which).finally(() => {
      which.checking = undefined;
    });
    return which.checking;
  }

  async function examine(which: KnownNode): Promise<boolean> {
    const seen = await introduced(which.node, closed);
    if (seen.kind === 'member') clusterId ??= seen.clusterId;
    return settle(which, seen);
  }

  /** Notes what a check showed. Returns whether the node is up. */
  function settle(which: KnownNode, seen: Introduction): boolean {
    which.clusterId = seen.kind === 'member' ? seen.clusterId : undefined;
    if (which.clusterId !== undefined && known.every((each) => each.clusterId === which.clusterId)) follow(which.clusterId);
    const objection = objectionTo(seen);
    if (objection === undefined) markUp(which);
    else stayDown(which, objection);
    return objection === undefined;
  }

  function follow(id: string): void {
    if (clusterId !== id)
      telemetry?.warn('the nodes of the index store belong to another cluster than before', { before: clusterId, now: id });
    clusterId = id;
  }

  function objectionTo(seen: Introduction): string | undefined {
    switch (seen.kind) {
      case 'absent':
        return seen.reason;
      case 'unasked':
        return undefined;
      case 'nameless':
        // where no node tells its cluster, nothing can be compared
        return clusterId === undefined ? undefined : `it answered ${seen.status} without the id of its cluster`;
      case 'member':
        return seen.clusterId === clusterId
          ? undefined
          : `it belongs to the cluster ${seen.clusterId}, and other nodes to ${clusterId}, which is used`;
    }
  }

  /** The first checks, all at the same time. Where they show several clusters, none can be taken for the right one. */
  async function meet(): Promise<void> {
    const met = await Promise.all(known.map(async (which) => ({ which, seen: await introduced(which.node, closed) })));
    const ids = met.flatMap(({ which, seen }) => (seen.kind === 'member' ? [{ name: which.node.name, id: seen.clusterId }] : []));
    const [first] = ids;
    const other = ids.find(({ id }) => id !== first?.id);
    if (first !== undefined && other !== undefined) {
      throw new FaultError('index.foreign-node', `${first.name} and ${other.name} belong to different clusters (${first.id}, ${other.id})`);
    }
    clusterId = first?.id;
    for (const { which, seen } of met) settle(which, seen);
  }

  return {
    next(tried) {
      const nowMs = clock.monotonicMs();
      for (const which of known) if (which.down !== undefined && which.down.checkAtMs <= nowMs) void check(which);
      const ready = known.filter((which) => which.down === undefined && !tried.has(which));
      turn += 1;
      return ready[turn % ready.length];
    },

    async revive(tried) {
      for (const which of known) {
        if (tried.has(which)) continue;
        if (await check(which)) return which;
        tried.add(which);
      }
      return undefined;
    },

    check,
    markDown(which, reason) {
      if (which.down === undefined) stayDown(which, reason);
    },
    reasons: () => known.map(({ node, down }) => `${node.name}: ${down?.reason ?? 'it answers'}`).join('; '),

    acquainted() {
      acquaintance ??= meet().catch((error: unknown) => {
        // the next request checks again
        acquaintance = undefined;
        throw error;
      });
      return acquaintance;
    },
  };
}

const introductionSchema = z.object({ cluster_uuid: z.string() });
/** The id that a node gives before it has joined a cluster. */
const NO_CLUSTER = '_na_';

type Introduction =
  | { readonly kind: 'member'; readonly clusterId: string }
  /** It answers without its cluster: the permission `cluster:monitor/main` is missing, or a proxy answers. */
  | { readonly kind: 'nameless'; readonly status: number }
  /** There are no credentials for signing: the request itself reports that. */
  | { readonly kind: 'unasked' }
  | { readonly kind: 'absent'; readonly reason: string };

/** Asks a node for its cluster. */
async function introduced(node: Node, closed: AbortSignal): Promise<Introduction> {
  const deadline = createDeadline(CHECK_TIMEOUT_MS, [closed]);
  const result = await node
    .request({ method: 'GET', path: '/' }, deadline.abandoned)
    .catch((error: unknown) => {
      if (error instanceof FaultError) return undefined;
      throw error;
    })
    .finally(() => deadline.clear());
  switch (result?.kind) {
    case undefined:
      return { kind: 'unasked' };
    case 'abandoned':
      return { kind: 'absent', reason: `no answer within ${CHECK_TIMEOUT_MS} ms` };
    case 'unsent':
    case 'cut':
      return { kind: 'absent', reason: result.reason };
    case 'answered': {
      const { status, body } = result.answer;
      const clusterId = introductionSchema.safeParse(body).data?.cluster_uuid;
      if (status >= 500 || clusterId === NO_CLUSTER) return { kind: 'absent', reason: `it answered ${status} and has joined no cluster` };
      return clusterId === undefined ? { kind: 'nameless', status } : { kind: 'member', clusterId };
    }
  }
}

export interface Deadline {
  readonly abandoned: AbortSignal;
  /** To be called when it is done. */
  clear(): void;
}

/**
 * Creates a deadline, which also passes with the first of the signals. (AbortSignal.any() of an AbortSignal.timeout() does
 * not serve: in Node 24 the second can be collected as garbage before its time, and then neither aborts.)
 */
export function createDeadline(timeoutMs: number, signals: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  const abandon = (): void => controller.abort();
  const timer = setTimeout(abandon, timeoutMs);
  for (const signal of signals) signal.addEventListener('abort', abandon, { once: true });
  if (signals.some(({ aborted }) => aborted)) abandon();
  return {
    abandoned: controller.signal,
    clear() {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', abandon);
    },
  };
}
