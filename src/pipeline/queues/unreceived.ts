/**
 * Notices that messages wait in a bucket queue from which no worker receives, in every process that serves: where none has the role
 * ingest, no worker could say so. It is stored like an open circuit, so that the status of each bucket has it, and is a warning of
 * the readiness of each process.
 */
import type { CircuitRecord } from '../../domain/circuit-record.ts';
import { adviceWhileServing } from '../../domain/fault.ts';
import type { WithPorts } from '../ports/ports.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import { createLastLook, OK, type ReadinessCheck } from '../serving/readiness.ts';
import type { QueueWatch } from './watch.ts';

const MINUTE_MS = 60_000;
/** A worker that receives says so once a minute. One that starts again, or is replaced, needs some minutes. */
const SILENT_MS = 10 * MINUTE_MS;

interface UnreceivedDependencies extends WithPorts<'state' | 'clock'> {
  readonly queueWatch: Pick<QueueWatch, 'visibleIn' | 'fault'>;
  readonly bucketQueueUrls: readonly string[];
}

export interface Unreceived {
  /** Looks at all bucket queues; to be repeated as often as open circuits are stored. Throws the store's fault. */
  readonly look: () => Promise<void>;
  readonly check: () => ReadinessCheck;
}

const CODE = 'queue.not-received';

export function createUnreceived({ state, clock, queueWatch, bucketQueueUrls }: UnreceivedDependencies): Unreceived {
  const lastLook = createLastLook(clock, 'the bucket queues');
  /** What is stored of each queue, by its URL. */
  const stored = new Map<string, CircuitRecord>();
  /** What the worker that received last had noted when it was first seen so, and when that was on this process's monotonic clock. */
  const watched = new Map<string, { readonly receivedAtMs: number | undefined; readonly firstMs: number }>();

  /**
   * For how long no worker has received although messages wait; undefined if that is not so. The time that a worker noted is of its
   * clock, which may be wrong: what counts is for how long this process has seen the same one.
   */
  async function silentMs(queueUrl: string): Promise<number | undefined> {
    if (queueWatch.visibleIn(queueUrl) === 0) {
      watched.delete(queueUrl);
      return undefined;
    }
    const before = watched.get(queueUrl);
    // while the store does not answer, no worker can note that it receives: that time does not count
    watched.delete(queueUrl);
    const receivedAtMs = (await readRecord(state, refs.queue(queueUrl)))?.receivedAtMs;
    const isSame = before !== undefined && before.receivedAtMs === receivedAtMs;
    const firstMs = isSame ? before.firstMs : clock.monotonicMs();
    watched.set(queueUrl, { receivedAtMs, firstMs });
    const lastedMs = clock.monotonicMs() - firstMs;
    return lastedMs > SILENT_MS ? lastedMs : undefined;
  }

  function recordOf(queueUrl: string, lastedMs: number): CircuitRecord {
    const [nowMs, count] = [clock.nowMs(), queueWatch.visibleIn(queueUrl)];
    return {
      level: 'queue',
      name: queueUrl,
      code: CODE,
      reason: `${count === 1 ? '1 message waits' : `${count} messages wait`} in the bucket queue, and no worker has received for ${Math.floor(lastedMs / MINUTE_MS)} minutes`,
      sinceMs: nowMs - lastedMs,
      seenAtMs: nowMs,
      otherQueues: bucketQueueUrls.filter((url) => url !== queueUrl),
    };
  }

  return {
    async look() {
      for (const queueUrl of bucketQueueUrls) {
        const lastedMs = await silentMs(queueUrl);
        const ref = refs.circuit('queue', queueUrl);
        if (lastedMs !== undefined) {
          const record = recordOf(queueUrl, lastedMs);
          stored.set(queueUrl, record);
          await updateRecord(state, ref, () => record);
        } else if (stored.delete(queueUrl)) await removeRecord(state, ref.id);
      }
      // how much waits in a queue that cannot be read is not known
      if (queueWatch.fault() === undefined) lastLook.looked();
    },
    check() {
      if (stored.size === 0) return lastLook.unknown() ?? OK;
      const detail = [...stored.values()].map(({ name, reason }) => `${name}: ${reason}`).join('; ');
      return { status: 'warning', code: CODE, detail, advice: adviceWhileServing(CODE) };
    },
  };
}
