/** Reads the attributes of the queues: depths for metrics and back-pressure, redrive policies for settlement, and retentions. */
import type { QueueAttributes, QueueClient } from '../aws/queues.ts';
import { faultOf, type Fault } from '../base/fault.ts';
import { lastReceiveOf } from '../events/outcome.ts';
import { repeat } from '../process/async.ts';
import type { WithPorts } from '../store/store.ts';

/** SQS updates its approximate numbers about this often. */
const INTERVAL_MS = 15_000;

/** A dead-letter queue: the one in the settings, a bucket queue's redrive target, or one of another region. */
export interface DeadLetterQueue {
  readonly queueUrl: string;
  /** The bucket queues whose messages it receives. */
  readonly bucketQueueUrls: readonly string[];
  /** Its attributes as last read; undefined until then. */
  readonly attributes: QueueAttributes | undefined;
}

export interface QueueWatch {
  /** Reads all queues once, then every 15 s until the signal is aborted. Failures are reported and shown by fault(); reading continues. */
  start(signal: AbortSignal): Promise<void>;
  /** The messages in flight in all bucket queues, as last read. */
  readonly inFlight: number;
  /** How often the queues were read, so that a reader knows when `inFlight` is a new number. */
  readonly readings: number;
  /** The visible messages in all bucket queues, as last read. */
  readonly visible: number;
  /** The messages in this queue, visible or in flight; 0 until it was read. */
  messagesIn(queueUrl: string): number;
  /** The receive at which Tally gives a message of this queue up, by its redrive policy as last read. */
  lastReceive(queueUrl: string): number;
  /** How long the queue keeps a message, as last read; undefined until then. */
  retentionMs(queueUrl: string): number | undefined;
  /** All known dead-letter queues; the one in the settings comes first. */
  deadLetterQueues(): readonly DeadLetterQueue[];
  /** Where Tally sends a bucket queue's letters: to the queue in the settings, else to its own redrive target, else to any other one. */
  deadLetterQueueOf(bucketQueueUrl: string): DeadLetterQueue | undefined;
  /** How far SQS's clock is ahead of this machine's, as last read: the greatest difference among the queues; 0 if none is known. */
  sqsAheadMs(): number;
  /** Why the last read of a dead-letter queue failed; undefined if all were read. */
  deadLetterFault(): Fault | undefined;
  /** Why the last read of the bucket queues failed; undefined if it did not. */
  fault(): Fault | undefined;
  /** Why the last read of this queue failed; undefined if it did not. */
  faultOf(queueUrl: string): Fault | undefined;
}

interface WatchDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly queues: QueueClient;
  readonly bucketQueueUrls: readonly string[];
  /** The setting; if undefined, each bucket queue's own redrive target is used. */
  readonly deadLetterQueueUrl: string | undefined;
  /** Told after each reading how far SQS's clock is ahead of this machine's, by the first bucket queue that answered. */
  readonly setClock?: (aheadMs: number) => void;
  /** Finds dead-letter queues of other regions, whose messages were on their way to the first bucket queue. */
  readonly farLetters?: ((signal?: AbortSignal) => Promise<readonly string[]>) | undefined;
}

/** Creates the watch; nothing is read before start(). */
export function createQueueWatch(dependencies: WatchDependencies): QueueWatch {
  const { queues, clock, telemetry, bucketQueueUrls } = dependencies;
  const attributes = new Map<string, QueueAttributes>();
  const faults = new Map<string, Fault>();
  let readings = 0;
  let far: readonly string[] = [];

  function targetOf(bucketQueueUrl: string): string | undefined {
    return attributes.get(bucketQueueUrl)?.deadLetterQueueUrl;
  }

  function deadLetterQueues(): readonly DeadLetterQueue[] {
    const urls = [dependencies.deadLetterQueueUrl, ...bucketQueueUrls.map(targetOf), ...far].filter((url) => url !== undefined);
    // a letter in a bucket queue would be received, and become a letter, again and again
    return [...new Set(urls).difference(new Set(bucketQueueUrls))].map((queueUrl) => ({
      queueUrl,
      bucketQueueUrls: far.includes(queueUrl) ? bucketQueueUrls.slice(0, 1) : bucketQueueUrls.filter((url) => targetOf(url) === queueUrl),
      attributes: attributes.get(queueUrl),
    }));
  }

  async function readAll(signal: AbortSignal): Promise<void> {
    let isSet = false;
    for (const url of bucketQueueUrls) {
      await read(url, signal);
      if (isSet || faults.has(url)) continue;
      dependencies.setClock?.(attributes.get(url)?.sqsAheadMs ?? 0);
      isSet = true;
    }
    readings += 1;
    // if one of the queues could not be read, their sum is unknown
    if (firstFault(bucketQueueUrls) === undefined) report('bucket', bucketQueueUrls);
    await findFar(signal);
    const letterUrls = deadLetterUrls();
    for (const url of letterUrls) await read(url, signal);
    // a lower bound: one unreadable queue must not hide the letters in the others
    const readable = letterUrls.filter((url) => !faults.has(url));
    if (readable.length > 0) report('dead-letter', readable);
  }

  async function findFar(signal: AbortSignal): Promise<void> {
    try {
      far = (await dependencies.farLetters?.(signal)) ?? [];
    } catch (error) {
      signal.throwIfAborted();
      telemetry.requestFailed('find the dead-letter queues of other regions', error);
    }
  }

  function deadLetterUrls(): readonly string[] {
    return deadLetterQueues().map(({ queueUrl }) => queueUrl);
  }

  function firstFault(urls: readonly string[]): Fault | undefined {
    return urls.map((url) => faults.get(url)).find((fault) => fault !== undefined);
  }

  async function read(queueUrl: string, signal: AbortSignal): Promise<void> {
    try {
      attributes.set(queueUrl, await queues.attributes(queueUrl, signal));
      faults.delete(queueUrl);
    } catch (error) {
      signal.throwIfAborted();
      const { code, reason } = faultOf(error);
      faults.set(queueUrl, { code, reason });
      const known = attributes.get(queueUrl);
      // a queue that does not exist holds no messages
      if (code === 'queue.missing' && known !== undefined) attributes.set(queueUrl, { ...known, visible: 0, inFlight: 0, delayed: 0 });
      telemetry.requestFailed('read queue attributes', error);
    }
  }

  function report(queue: 'bucket' | 'dead-letter', urls: readonly string[]): void {
    const known = urls.flatMap((url) => attributes.get(url) ?? []);
    const sum = (field: 'visible' | 'inFlight' | 'delayed'): number => known.reduce((total, each) => total + each[field], 0);
    telemetry.set('tally_queue_messages', sum('visible'), { queue, state: 'visible' });
    telemetry.set('tally_queue_messages', sum('inFlight'), { queue, state: 'in-flight' });
    telemetry.set('tally_queue_messages', sum('delayed'), { queue, state: 'delayed' });
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
    get visible() {
      return bucketQueueUrls.reduce((total, url) => total + (attributes.get(url)?.visible ?? 0), 0);
    },
    messagesIn(queueUrl) {
      const { visible = 0, inFlight = 0 } = attributes.get(queueUrl) ?? {};
      return visible + inFlight;
    },
    lastReceive: (queueUrl) => lastReceiveOf(attributes.get(queueUrl)?.maxReceiveCount),
    retentionMs: (queueUrl) => attributes.get(queueUrl)?.retentionMs,
    deadLetterQueues,
    deadLetterQueueOf(bucketQueueUrl) {
      const all = deadLetterQueues();
      const wanted = dependencies.deadLetterQueueUrl ?? targetOf(bucketQueueUrl);
      return all.find(({ queueUrl }) => queueUrl === wanted) ?? all.find(({ queueUrl }) => !far.includes(queueUrl));
    },
    sqsAheadMs() {
      const known = bucketQueueUrls.flatMap((url) => attributes.get(url)?.sqsAheadMs ?? []);
      return known.toSorted((a, b) => Math.abs(b) - Math.abs(a))[0] ?? 0;
    },
    deadLetterFault: () => firstFault(deadLetterUrls()),
    fault: () => firstFault(bucketQueueUrls),
    faultOf: (queueUrl) => faults.get(queueUrl),
  };
}
