/** Reads the attributes of the queues: their depths for metrics and back-pressure, and the redrive policy for settlement. */
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueAttributes, QueueClient } from '../ports/queues.ts';
import { faultOf } from '../../domain/fault.ts';
import { repeat } from '../serving/repeat.ts';
import type { Fault } from '../../domain/fault.ts';

/** SQS updates its approximate numbers about this often. */
const INTERVAL_MS = 15_000;
/** Without a redrive policy SQS never moves a message away; Tally gives up after the recommended maximum instead. */
const RECEIVES_MAX_DEFAULT = 20;

export interface QueueWatch {
  /** Reads all queues once, then every 15 s until the signal is aborted. Failures are reported and are visible in fault(); the reads continue. */
  start(signal: AbortSignal): Promise<void>;
  /** The messages in flight in all bucket queues, as last read. */
  readonly inFlight: number;
  /** How often the queues were read, so that a reader knows when `inFlight` is a new number. */
  readonly readings: number;
  /** How long the queue keeps a message; undefined if that could not be read. */
  retentionMs(queueUrl: string): number | undefined;
  /** The visible messages in all bucket queues, as last read. */
  readonly visible: number;
  /** The maxReceiveCount of the queue's redrive policy, as last read; 20 without a policy. */
  maxReceiveCount(queueUrl: string): number;
  readonly deadLetterQueueUrl: string | undefined;
  /** Why the last read of the dead-letter queue failed; undefined if it did not. */
  deadLetterFault(): Fault | undefined;
  /** The visible messages in the dead-letter queue, as last read; 0 if no queue is known. */
  readonly deadLettersVisible: number;
  /** Why the last read of the bucket queues failed; undefined if it did not. */
  fault(): Fault | undefined;
}

interface WatchDependencies {
  readonly queues: QueueClient;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly bucketQueueUrls: readonly string[];
  readonly workQueueUrl: string | undefined;
  /** The setting; if undefined, the redrive target of the bucket queue is used. */
  readonly deadLetterQueueUrl: string | undefined;
}

/** Creates the watch; nothing is read before start(). */
export function createQueueWatch(dependencies: WatchDependencies): QueueWatch {
  const { queues, clock, telemetry, bucketQueueUrls, workQueueUrl } = dependencies;
  const attributes = new Map<string, QueueAttributes>();
  let readings = 0;
  let lastFault: Fault | undefined;
  let lastDeadLetterFault: Fault | undefined;

  function deadLetterQueueUrl(): string | undefined {
    return (
      dependencies.deadLetterQueueUrl ??
      bucketQueueUrls.map((url) => attributes.get(url)?.deadLetterQueueUrl).find((url) => url !== undefined)
    );
  }

  async function readAll(signal: AbortSignal): Promise<void> {
    let fault: Fault | undefined;
    for (const url of bucketQueueUrls) fault = (await read(url, signal)) ?? fault;
    lastFault = fault;
    readings += 1;
    report('bucket', bucketQueueUrls);
    await readOther('work', workQueueUrl, signal);
    lastDeadLetterFault = await readOther('dead-letter', deadLetterQueueUrl(), signal);
  }

  async function readOther(queue: 'work' | 'dead-letter', url: string | undefined, signal: AbortSignal): Promise<Fault | undefined> {
    if (url === undefined) return undefined;
    const fault = await read(url, signal);
    report(queue, [url]);
    return fault;
  }

  async function read(queueUrl: string, signal: AbortSignal): Promise<Fault | undefined> {
    try {
      attributes.set(queueUrl, await queues.attributes(queueUrl, signal));
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(error);
      telemetry.requestFailed('read queue attributes', fault.code, fault.reason);
      return fault;
    }
  }

  function report(queue: Parameters<Telemetry['queueDepth']>[0], urls: readonly string[]): void {
    const known = urls.flatMap((url) => attributes.get(url) ?? []);
    const sum = (field: 'visible' | 'inFlight' | 'delayed'): number => known.reduce((total, each) => total + each[field], 0);
    telemetry.queueDepth(queue, { visible: sum('visible'), inFlight: sum('inFlight'), delayed: sum('delayed') });
  }

  return {
    async start(signal) {
      await readAll(signal);
      repeat({ clock, telemetry }, { name: 'watch the queues', intervalMs: INTERVAL_MS, signal }, readAll);
    },
    get inFlight() {
      return bucketQueueUrls.reduce((total, url) => total + (attributes.get(url)?.inFlight ?? 0), 0);
    },
    get readings() {
      return readings;
    },
    retentionMs: () => undefined,
    get visible() {
      return bucketQueueUrls.reduce((total, url) => total + (attributes.get(url)?.visible ?? 0), 0);
    },
    maxReceiveCount: (queueUrl) => attributes.get(queueUrl)?.maxReceiveCount ?? RECEIVES_MAX_DEFAULT,
    get deadLetterQueueUrl() {
      return deadLetterQueueUrl();
    },
    get deadLettersVisible() {
      return attributes.get(deadLetterQueueUrl() ?? '')?.visible ?? 0;
    },
    deadLetterFault: () => lastDeadLetterFault,
    fault: () => lastFault,
  };
}
