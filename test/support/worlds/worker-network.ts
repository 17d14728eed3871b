/** The network of one process of the workers world: what its requests meet, and what becomes of them once it was killed. */
import { receiveBackoffMs } from '../../../src/aws/sqs-receiver.ts';
import { FaultError, type FaultCode } from '../../../src/base/fault.ts';
import type { Clock } from '../../../src/process/clock.ts';
import type { IndexWrite, IndexWriteAnswer, Store } from '../../../src/store/store.ts';
import type { QueueClient, QueueMessage, QueueReceiver } from '../../../src/aws/queues.ts';
import type { BucketListing, ObjectStorage } from '../../../src/aws/storage.ts';
import { guarded } from '../fakes/guarded.ts';
import type { FakeQueues, FakeStorage } from '../fakes/ports.ts';
import { QUEUE } from './roles.ts';

const S3_MS = 20;
const BULK_MS = 15;
const RECEIVE_MS = 15;
const POLL_MS = 20_000;
/** How often a long poll is answered. */
const LOOK_MS = 500;

/** What a worker's network does to its requests. Each function throws, or answers as the fault does. */
export interface PortFault {
  /** Before S3 answers a request about a bucket, or about one of its keys. */
  readonly s3?: (asked: { readonly bucket: string; readonly region?: string; readonly key?: string }, clock: Clock) => Promise<void> | void;
  /** Before the index store answers a request. */
  readonly store?: (call: 'read' | 'write') => void;
  /** The fault of one item of a bulk request; undefined: it is written. */
  readonly item?: (document: { readonly bucket: string; readonly key: string }) => FaultCode | undefined;
  /** What is read instead of a state record. */
  readonly record?: (id: string, record: unknown) => unknown;
  readonly queue?: (call: 'receive' | 'other') => void;
}

export interface Network {
  fault: PortFault | undefined;
}

/** One process: its network, and the end of its life. */
export interface Life {
  readonly network: Network;
  readonly dead: AbortSignal;
  readonly clock: Clock;
}

/** What the processes share. */
export interface Services {
  readonly clock: Clock;
  readonly store: Store;
  readonly storage: FakeStorage;
  readonly queues: FakeQueues;
  /** Called when a document was written. */
  readonly indexed: (bucket: string, key: string) => void;
}

/** Ends in nothing for a process that was killed. */
export function alive(dead: AbortSignal): Promise<void> {
  return dead.aborted ? new Promise(() => {}) : Promise.resolve();
}

export function storeThrough({ store, indexed }: Services, { network, dead, clock }: Life): Store {
  async function asks(kind: 'read' | 'write'): Promise<void> {
    await alive(dead);
    network.fault?.store?.(kind);
  }

  async function write(writes: readonly IndexWrite[]): Promise<readonly IndexWriteAnswer[]> {
    await clock.sleep(BULK_MS);
    await asks('write');
    const answers: IndexWriteAnswer[] = [];
    for (const each of writes) {
      const code = network.fault?.item?.(each.document);
      if (code !== undefined) answers.push({ kind: 'fault', fault: { code, reason: 'a fault of the test' } });
      else {
        const written = await store.objects.write([each]);
        if (written[0]?.kind === 'written') indexed(each.document.bucket, each.document.key);
        answers.push(...written);
      }
    }
    return answers;
  }

  const { objects, state, scan } = store;
  const asked = guarded(state, (method) => asks(method === 'put' || method === 'remove' ? 'write' : 'read'));
  return {
    ...store,
    objects: {
      ...guarded(objects, () => asks('read'), ['getMany']),
      write,
      async probeBucket(bucket, signal) {
        await asks('write');
        const code = network.fault?.item?.({ bucket, key: '' });
        if (code !== undefined) throw new FaultError(code, 'a fault of the test');
        return objects.probeBucket(bucket, signal);
      },
      probe: () => asks('write'),
    },
    scan: guarded(scan, () => asks('read')),
    state: {
      ...asked,
      async get(...args) {
        const entry = await asked.get(...args);
        return entry && { ...entry, record: network.fault?.record?.(entry.id, entry.record) ?? entry.record };
      },
    },
  };
}

export function storageThrough({ storage }: Services, { network, clock }: Life): ObjectStorage & BucketListing {
  async function call<Answer>(
    asked: Parameters<NonNullable<PortFault['s3']>>[0],
    ask: () => Promise<Answer>,
    signal?: AbortSignal,
  ): Promise<Answer> {
    await clock.sleep(S3_MS, signal);
    await network.fault?.s3?.(asked, clock);
    signal?.throwIfAborted();
    return ask();
  }

  return {
    readState: (bucket, key, signal, how) => call({ ...bucket, key }, () => storage.readState(bucket, key, signal, how), signal),
    firstKey: (location, signal) => call(location, () => storage.firstKey(location, signal), signal),
    regionOf: (bucket, signal) => call({ bucket }, () => storage.regionOf(bucket, signal), signal),
    versioningOf: (location, signal) => call(location, () => storage.versioningOf(location, signal), signal),
    readVersion: (location, version, signal) =>
      call({ ...location, key: version.key }, () => storage.readVersion(location, version, signal), signal),
    readTags: (location, version, signal) =>
      call({ ...location, key: version.key }, () => storage.readTags(location, version, signal), signal),
    page: (location, range, signal) => call(location, () => storage.page(location, range, signal), signal),
  };
}

export function queuesThrough({ queues }: Services, { network, dead }: Life): QueueClient {
  return guarded<QueueClient>(queues, async () => {
    await alive(dead);
    network.fault?.queue?.('other');
  });
}

interface PollerDependencies {
  readonly queues: FakeQueues;
  readonly life: Life;
  readonly pollers: number;
}

/** The pollers of one worker, as the real receiver has them: long polls, and longer waits after failures. */
export function createPollers({ queues, life: { network, dead, clock }, pollers }: PollerDependencies): QueueReceiver {
  const stopping = new AbortController();
  const ended = AbortSignal.any([stopping.signal, dead]);

  async function receive(): Promise<readonly QueueMessage[]> {
    const untilMs = clock.monotonicMs() + POLL_MS;
    for (;;) {
      const messages = await queues.receive(QUEUE, { visibilityS: 60, max: 10 });
      if (messages.length > 0 || clock.monotonicMs() >= untilMs) return messages;
      await clock.sleep(LOOK_MS - (clock.monotonicMs() % LOOK_MS), ended);
    }
  }

  async function poll(handlers: Parameters<QueueReceiver['start']>[0]): Promise<void> {
    for (let failures = 0; ;) {
      if (failures > 0) await clock.sleep(receiveBackoffMs(failures), ended);
      await handlers.admit(ended);
      try {
        await clock.sleep(RECEIVE_MS, ended);
        network.fault?.queue?.('receive');
        const messages = await receive();
        failures = 0;
        handlers.polled?.(QUEUE);
        if (messages.length > 0) await handlers.handle(messages);
      } catch (error) {
        ended.throwIfAborted();
        failures += 1;
        if (error instanceof FaultError) handlers.failed(error, QUEUE);
      }
    }
  }

  return {
    start(handlers) {
      for (let poller = 0; poller < pollers; poller += 1) void poll(handlers).catch(() => undefined);
    },
    async stop() {
      stopping.abort(new Error('receiving was stopped'));
    },
  };
}
