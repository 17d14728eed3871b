/**
 * Plans and makes the two queues of an installation. A queue is made with all its attributes by one request. Of one that exists
 * and was made otherwise, the attributes that differ are set.
 */
import { partitionOf } from '../../domain/provisioning/names.ts';
import {
  attributeTexts,
  queueDifferences,
  wantedQueues,
  type QueueDifference,
  type WantedQueue,
} from '../../domain/provisioning/planning/queue-pair.ts';
import { FaultError } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { NamedQueue, QueueMaker } from '../ports/queue-pair.ts';

export interface PlannedQueue extends WantedQueue {
  readonly state: 'absent' | 'as-planned' | 'different';
  /** Undefined: it does not exist. */
  readonly url?: string;
  readonly differences: readonly QueueDifference[];
}

export interface QueuePairPlan {
  readonly region: string;
  readonly account: string;
  /** In the order in which they are made. */
  readonly queues: readonly PlannedQueue[];
  /** What to export, once both queues are there as planned. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The names of the queues that this call has made, or healed. Absent: it changed none. */
  readonly made?: readonly string[];
}

export interface QueuePair {
  /** Reads what exists. */
  plan(prefix: string, signal?: AbortSignal): Promise<QueuePairPlan>;
  /** Makes what is absent, sets what differs, and reads both again. */
  apply(prefix: string, signal?: AbortSignal): Promise<QueuePairPlan>;
}

interface Dependencies {
  readonly aws: QueueMaker;
  readonly clock: Clock;
  readonly region: string;
}

/** AWS says that a new queue can be used after one second. It, and a changed attribute, is seen everywhere within a minute. */
const SEEN_AFTER_MS = 1_000;
const READS_MAX = 60;

export function createQueuePair({ aws, clock, region }: Dependencies): QueuePair {
  async function planned(wanted: WantedQueue, signal?: AbortSignal): Promise<PlannedQueue> {
    const found = await aws.queueNamed(wanted.name, signal);
    if (found === 'absent') return { ...wanted, state: 'absent', differences: [] };
    return judged(wanted, found);
  }

  async function plan(prefix: string, signal?: AbortSignal): Promise<QueuePairPlan> {
    const account = await aws.account(signal);
    const wanted = wantedQueues(prefix, { partition: partitionOf(region), region, account });
    const [letters, bucket] = [await planned(wanted[0], signal), await planned(wanted[1], signal)];
    return { region, account, queues: [letters, bucket], ...settingsOf(region, letters, bucket) };
  }

  /** The redrive policy of the bucket queue may name the dead-letter queue only once SQS sees it. */
  async function make(queue: PlannedQueue, signal?: AbortSignal): Promise<void> {
    const differing = Object.fromEntries(queue.differences.map(({ attribute, wanted }) => [attribute, wanted]));
    if (queue.url === undefined) await aws.createQueue(queue.name, attributeTexts(queue), signal);
    else await aws.setAttributes(queue.url, differing, signal);
    for (let count = 0; count < READS_MAX; count += 1) {
      await clock.sleep(SEEN_AFTER_MS, signal);
      if ((await planned(queue, signal)).state === 'as-planned') return;
    }
    throw new FaultError('connect.unavailable', `${queue.name}: SQS does not show the queue as planned after ${READS_MAX} s`);
  }

  return {
    plan,
    async apply(prefix, signal) {
      const before = await plan(prefix, signal);
      const unplanned = before.queues.filter(({ state }) => state !== 'as-planned');
      for (const queue of unplanned) await make(queue, signal);
      return unplanned.length === 0 ? before : { ...(await plan(prefix, signal)), made: unplanned.map(({ name }) => name) };
    },
  };
}

function judged(wanted: WantedQueue, { url, attributes }: NamedQueue): PlannedQueue {
  const differences = queueDifferences(wanted, attributes);
  return { ...wanted, url, state: differences.length === 0 ? 'as-planned' : 'different', differences };
}

function settingsOf(region: string, letters: PlannedQueue, bucket: PlannedQueue): Pick<QueuePairPlan, 'settings'> {
  if (letters.state !== 'as-planned' || bucket.state !== 'as-planned' || bucket.url === undefined || letters.url === undefined) return {};
  return { settings: { AWS_REGION: region, TALLY_QUEUE_URL: bucket.url, TALLY_DEAD_LETTER_QUEUE_URL: letters.url } };
}
