/** Watches the queues: depths for metrics and back-pressure, the redrive policy for settlement. */
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueAttributes, QueueClient } from '../ports/queues.ts';
import { faultOf } from '../../domain/fault.ts';
import { repeat } from '../serving/repeat.ts';
import type { Fault } from '../../domain/fault.ts';

/** SQS updates its approximate numbers about this often. */
const INTERVAL_MS = 15_000;
/** Where the queue has no redrive policy SQS never gives up; then we do, after what is recommended. */
const RECEIVES_MAX_DEFAULT = 20;

export interface QueueWatch {
  /** Reads all queues once, then every 15 s until stopped. Failures are told and shown by fault(); they stop nothing. */
  start(signal: AbortSignal): Promise<void>;
  /** Messages in flight over all bucket queues, as last read. */
  readonly inFlight: number;
  /** Messages waiting in all bucket queues, as last read. */
  readonly visible: number;
  maxReceiveCount(queueUrl: string): number;
  readonly deadLetterQueueUrl: string | undefined;
  /** Why the dead-letter queue could not be read at the last try. */
  deadLetterFault(): Fault | undefined;
  /** Letters waiting in the dead-letter queue, as last read; 0 when none is known. */
  readonly deadLettersVisible: number;
  /** Why the bucket queues could not be read at the last try. */
  fault(): Fault | undefined;
}

interface WatchDependencies {
  readonly queues: QueueClient;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly bucketQueueUrls: readonly string[];
  readonly workQueueUrl: string | undefined;
  /** As set; else the bucket queue's redrive target. */
  readonly deadLetterQueueUrl: string | undefined;
}

/** Creates the watch; nothing is read before start(). */
export function createQueueWatch(dependencies: WatchDependencies): QueueWatch {
  const { queues, clock, telemetry, bucketQueueUrls, workQueueUrl } = dependencies;
  const attributes = new Map<string, QueueAttributes>();
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
    tell('bucket', bucketQueueUrls);
    await readOther('work', workQueueUrl, signal);
    lastDeadLetterFault = await readOther('dead-letter', deadLetterQueueUrl(), signal);
  }

  async function readOther(queue: 'work' | 'dead-letter', url: string | undefined, signal: AbortSignal): Promise<Fault | undefined> {
    if (url === undefined) return undefined;
    const fault = await read(url, signal);
    tell(queue, [url]);
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

  function tell(queue: Parameters<Telemetry['queueDepth']>[0], urls: readonly string[]): void {
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
