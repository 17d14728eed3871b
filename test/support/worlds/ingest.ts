/** The ingest role over fakes of our ports: what S3 holds, what was sent, what the index says; time moves only by `run`. */
import { formEncoded } from '../event-fixtures.ts';
import { setImmediate } from 'node:timers/promises';
import { sequencerOf } from '../../../src/demo/clock.ts';
import type { BucketRecord } from '../../../src/records/bucket.ts';
import type { ObjectDocument, PresentState } from '../../../src/ordering/document.ts';
import type { FaultError, FaultCode } from '../../../src/base/fault.ts';
import { markId, markSchema, type DirtyMark } from '../../../src/records/dirty.ts';
import type { IngestLimits } from '../../../src/indexer/indexer.ts';
import type { Clock } from '../../../src/process/clock.ts';
import type { IndexWrite, IndexWriteAnswer, StateStore } from '../../../src/store/store.ts';
import type { ObjectStorage } from '../../../src/aws/storage.ts';
import type { QueueClient, QueueMessage, QueueReceiver } from '../../../src/aws/queues.ts';
import type { EventCounter } from '../../../src/indexer/arrivals.ts';
import { listAllRecords, readRecord, refs, removeRecord } from '../../../src/store/stored.ts';
import { outcomeKinds } from '../../../src/events/outcome.ts';
import { createFakeClock, createFakeQueues, createFakeStorage, createFakeTelemetry, type FakeQueues } from '../fakes/ports.ts';
import { guarded } from '../fakes/guarded.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import type { HandedOverRecord } from '../../../src/indexer/handover.ts';
import { createIngest, DEAD_LETTERS, QUEUE } from './roles.ts';

export const BUCKET = 'photos';

/** The step in which time moves at first, and in which an idle poller of the scripted receiver looks. */
const STEP_MS = 50;
/** After so long a run whatever was just sent is on its way, and larger steps do. */
const SMALL_STEPS_MS = 2_000;
const LARGE_STEP_MS = 500;

interface WorldOptions {
  /** Creates what counts events. Default: nothing does. */
  readonly counter?: (parts: { readonly state: StateStore; readonly clock: Clock }) => EventCounter;
  readonly limits?: Partial<IngestLimits>;
  readonly maxReceiveCount?: number;
  /** How far this worker's wall clock is ahead of AWS's. */
  readonly skewMs?: number;
  readonly pollers?: number;
  /** How long the queues keep a message; absent: not known. */
  readonly retentionMs?: number;
  /** False: no dead-letter queue is known. */
  readonly deadLetters?: boolean;
  /** Buckets that exist and are connected at the start. */
  readonly buckets?: readonly string[];
  readonly bucket?: Partial<BucketRecord>;
  /** False: records may not be handed over. */
  readonly handsOver?: boolean;
  /** False: the store is not AWS, and may spell keys in any way. */
  readonly isAws?: boolean;
}

const LIMITS: IngestLimits = {
  bulk: { actionsMax: 1_000, bytesMax: 5_000_000, lingerMs: 20, concurrency: 4 },
  headConcurrency: 32,
  heldMax: 100,
  weightMaxBytes: 256 * 1_048_576,
  inFlightMax: 1_000,
  visibilityS: 60,
};

/** The record that a handover reads, so that it needs the store. */
export const HANDED_OVER = 'any';

export type IngestWorld = Awaited<ReturnType<typeof createIngestWorld>>;

/** Lets everything run that can run without time moving on. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await setImmediate();
}

/** Joins the parts and starts them. */
export async function createIngestWorld(options: WorldOptions = {}) {
  const clock = createFakeClock();
  const workerClock: Clock = { ...clock, nowMs: () => clock.nowMs() + (options.skewMs ?? 0) };
  const store = createBreakableStore();
  const storage = createFakeStorage(clock);
  const seenStorage = createHookedStorage(storage);
  const redrive = {
    maxReceiveCount: options.maxReceiveCount ?? 20,
    ...(options.deadLetters !== false && { deadLetterQueueUrl: DEAD_LETTERS }),
    ...(options.retentionMs !== undefined && { retentionMs: options.retentionMs }),
  };
  const queues = createNotedQueues(createFakeQueues(clock, redrive));
  const telemetry = createFakeTelemetry();
  const confirmed: string[] = [];
  let refusal: FaultError | undefined;
  const stopping = new AbortController();
  const state = store.state;
  const handedOver: HandedOverRecord[] = [];
  let stepMs = STEP_MS;
  const receiver = createScriptedReceiver({ queues, clock: workerClock, pollers: options.pollers ?? 1, idleMs: () => stepMs });
  const { circuits, connect, role, start } = createIngest(
    {
      store,
      storage: seenStorage,
      queues,
      receiver,
      handover: {
        isPermitted: options.handsOver ?? true,
        handOver: async (record) => {
          await store.state.get(HANDED_OVER);
          handedOver.push(record);
        },
      },
      clock: workerClock,
      telemetry,
      counter: options.counter?.({ state: store.plainState, clock: workerClock }) ?? { event: () => undefined },
      async confirmSubscription(topicArn) {
        if (refusal !== undefined) throw refusal;
        confirmed.push(topicArn);
      },
      isAws: options.isAws ?? true,
      limits: {
        ...LIMITS,
        ...options.limits,
      },
    },
    stopping,
  );
  for (const bucket of options.buckets ?? [BUCKET]) await connectBucket(bucket, options.bucket);
  await start();

  async function connectBucket(bucket: string, change: Partial<BucketRecord> = {}): Promise<void> {
    storage.createBucket(bucket, { versioning: change.versioning?.status ?? 'never' });
    await connect.connect({ bucket }, 'test');
    await removeRecord(store.plainState, refs.gap(markId(bucket)).id);
    await changeBucket(bucket, change);
  }

  async function changeBucket(bucket: string, change: Partial<BucketRecord>): Promise<void> {
    const { id, kind } = refs.bucket(bucket);
    const entry = await state.get(id);
    await state.put({ id, kind, record: { ...(entry!.record as BucketRecord), ...change } }, entry!.version);
  }

  async function send(...records: readonly unknown[]): Promise<void> {
    await sendBody(JSON.stringify({ Records: records }));
  }

  async function sendBody(body: string, attributes: QueueMessage['attributes'] = {}): Promise<void> {
    await queues.send(QUEUE, { body, attributes });
  }

  /** Moves time on in small steps, letting everything run in between. */
  async function run(forMs: number): Promise<void> {
    let doneMs = 0;
    while (doneMs < forMs) {
      const leftMs = forMs - doneMs;
      // small again at the end, so that no poller sleeps for long when a test sends what comes next
      stepMs = doneMs < SMALL_STEPS_MS || leftMs <= 2 * LARGE_STEP_MS ? STEP_MS : LARGE_STEP_MS;
      const nextMs = Math.min(stepMs, leftMs);
      await clock.advance(nextMs);
      await settled();
      doneMs += nextMs;
    }
  }

  /** Sends one record, and lets it be handled. */
  async function tell(record: unknown, forMs = 200): Promise<void> {
    await send(record);
    await run(forMs);
  }

  async function tellBody(body: string, forMs = 200): Promise<void> {
    await sendBody(body);
    await run(forMs);
  }

  async function document(key: string, bucket = BUCKET): Promise<ObjectDocument | undefined> {
    return (await store.plainObjects.getMany(bucket, [key]))[0];
  }

  return {
    clock,
    store,
    storage,
    storageHooks: seenStorage.hooks,
    queues,
    telemetry,
    circuits,
    handedOver,
    role,
    receiver,
    confirmed,
    stopping,
    run,
    send,
    sendBody,
    tell,
    tellBody,
    document,
    changeBucket,
    /** Connects a bucket without a gap, as after its first re-index. */
    connectBucket,
    refuseConfirmations: (fault: FaultError | undefined) => {
      refusal = fault;
    },
    messages: () => queues.messages(QUEUE),
    letters: () => queues.messages(DEAD_LETTERS),
    gaps: (): Promise<readonly DirtyMark[]> => listAllRecords(store.plainState, 'gap', markSchema),
    bucketRecord: (bucket = BUCKET) => readRecord(store.plainState, refs.bucket(bucket)),
    unconnected: (bucket: string) => readRecord(store.plainState, refs.unconnected(bucket)),
    /** How records ended so far, in order. */
    outcomes: () => telemetry.labels('tally_records_total').flatMap(({ outcome }) => outcomeKinds.find((kind) => kind === outcome) ?? []),
    settlements: () => telemetry.labels('tally_messages_total').map(({ settlement }) => settlement),
    /** An object that appears in S3 now, and the notification that tells it. */
    put(key: string, change: NativeChange = {}): NativeRecord {
      const bucket = change.bucket ?? BUCKET;
      const object = storage.put(bucket, key);
      return nativeRecord(key, {
        eventTimeMs: clock.nowMs(),
        bucket,
        object,
        ...change,
      });
    },
    /** An object that appears in S3 now, of which only the routing rule tells. */
    routedPut(key: string, bucket = BUCKET) {
      storage.put(bucket, key);
      return syntheticRecord(key, { bucket, eventTimeMs: clock.nowMs() });
    },
    /** An object that goes from S3 now, and the notification that tells it. */
    remove(key: string, change: NativeChange = {}): NativeRecord {
      storage.delete(BUCKET, key);
      return nativeRecord(key, {
        eventTimeMs: clock.nowMs(),
        eventName: 'ObjectRemoved:Delete',
        ...change,
      });
    },
    async stop(deadline: AbortSignal = new AbortController().signal): Promise<void> {
      const stopped = role.stop(deadline);
      for (let isOver = false; !isOver; await run(STEP_MS)) isOver = await Promise.race([stopped.then(() => true), setImmediate(false)]);
    },
  };
}

// ── what is sent ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface NativeChange {
  readonly bucket?: string;
  readonly eventName?: string;
  readonly eventTimeMs?: number;
  /** Absent: the event's time; null: none. */
  readonly sequencer?: string | null;
  readonly object?: Partial<PresentState>;
}

export type NativeRecord = ReturnType<typeof nativeRecord>;

/** A record of S3's own notification. */
export function nativeRecord(key: string, change: NativeChange = {}) {
  const { object = {}, eventTimeMs = 0 } = change;
  const sequencer = change.sequencer === undefined ? sequencerAt(eventTimeMs) : change.sequencer;
  return {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    awsRegion: 'us-east-1',
    eventTime: new Date(eventTimeMs).toISOString(),
    eventName: change.eventName ?? 'ObjectCreated:Put',
    s3: {
      bucket: { name: change.bucket ?? BUCKET },
      object: {
        key: formEncoded(key),
        ...(object.sizeBytes !== undefined && { size: object.sizeBytes }),
        ...(object.etag !== undefined && { eTag: object.etag }),
        ...(object.versionId !== undefined && { versionId: object.versionId }),
        ...(sequencer !== null && { sequencer }),
      },
    },
  };
}

/** A record of the routing rule. */
export function syntheticRecord(
  key: string,
  change: { readonly bucket?: string; readonly eventName?: string; readonly eventTimeMs: number },
) {
  return {
    awsRegion: 'us-east-1',
    eventName: change.eventName ?? 'PutObject',
    eventTime: new Date(Math.floor(change.eventTimeMs / 1_000) * 1_000).toISOString(),
    s3: { bucket: { name: change.bucket ?? BUCKET }, object: { key, eTag: '', versionId: '', isDeleteMarker: '' } },
  };
}

/** The sequencer of a moment, in its real form. */
export function sequencerAt(ms: number): string {
  return sequencerOf(ms * 1_000);
}

// ── what can break ────────────────────────────────────────────────────────────────────────────────────────────────

interface StoreBreakage {
  /** Every request to the store fails so. */
  all?: FaultError | undefined;
  /** Requests that write documents fail so, while the probe may answer. */
  writes?: FaultError | undefined;
  /** Writes of these buckets are answered so. */
  readonly buckets: Map<string, FaultCode>;
  /** Awaited before each write request is carried out. */
  beforeWrite?: ((writes: readonly IndexWrite[]) => Promise<void>) | undefined;
}

/** A memory store that can be broken. */
export function createBreakableStore() {
  const plain = createMemoryStore();
  const broken: StoreBreakage = { buckets: new Map() };
  /** The documents of each request. */
  const requests: (readonly IndexWrite[])[] = [];
  /** Ids of the state records that were read. */
  const stateReads: string[] = [];

  const check = (): void => {
    if (broken.all !== undefined) throw broken.all;
  };

  async function write(writes: readonly IndexWrite[]): Promise<readonly IndexWriteAnswer[]> {
    requests.push(writes);
    await broken.beforeWrite?.(writes);
    check();
    if (broken.writes !== undefined) throw broken.writes;
    const answers: IndexWriteAnswer[] = [];
    for (const each of writes) {
      const code = broken.buckets.get(each.document.bucket);
      if (code === undefined) answers.push(...(await plain.objects.write([each])));
      else answers.push({ kind: 'fault', fault: { code, reason: 'broken by the test' } });
    }
    return answers;
  }

  return {
    ...plain,
    broken,
    requests,
    stateReads,
    /** What is behind it, whatever is broken. */
    plainObjects: plain.objects,
    plainState: plain.state,
    objects: { ...guarded(plain.objects, check, ['getMany', 'probe']), write },
    state: guarded(plain.state, (method, [id]) => {
      if (method === 'get') stateReads.push(String(id));
      check();
    }),
  };
}

interface StorageHooks {
  /** Told of each HEAD request. */
  beforeHead?: ((bucket: Parameters<ObjectStorage['readState']>[0]) => void) | undefined;
  /** Awaited after a key was read, before that is answered. */
  afterHead?: ((key: string) => Promise<void>) | undefined;
}

function createHookedStorage(storage: ObjectStorage): ObjectStorage & { readonly hooks: StorageHooks } {
  const hooks: StorageHooks = {};
  return {
    ...storage,
    hooks,
    readState: async (bucket, key, signal, how) => {
      hooks.beforeHead?.(bucket);
      const seen = await storage.readState(bucket, key, signal, how);
      await hooks.afterHead?.(key);
      signal?.throwIfAborted();
      return seen;
    },
  };
}

function createNotedQueues(queues: FakeQueues) {
  /** The entries of each visibility request and delete request, in order. */
  const settlements: { kind: 'delete' | number; receiptHandle: string }[] = [];
  /** Awaited before each delete or visibility request; it may throw. */
  const broken: { beforeSettling?: ((kind: 'delete' | 'visibility') => Promise<void>) | undefined } = {};
  const noted: Pick<QueueClient, 'deleteBatch' | 'changeVisibilityBatch'> = {
    deleteBatch: async (queueUrl, receiptHandles, signal) => {
      await broken.beforeSettling?.('delete');
      settlements.push(...receiptHandles.map((receiptHandle) => ({ kind: 'delete' as const, receiptHandle })));
      return queues.deleteBatch(queueUrl, receiptHandles, signal);
    },
    changeVisibilityBatch: async (queueUrl, entries, signal) => {
      await broken.beforeSettling?.('visibility');
      settlements.push(...entries.map(({ receiptHandle, timeoutS }) => ({ kind: timeoutS, receiptHandle })));
      return queues.changeVisibilityBatch(queueUrl, entries, signal);
    },
  };
  return { ...queues, ...noted, settlements, broken };
}

// ── receiving ─────────────────────────────────────────────────────────────────────────────────────────────────────

interface ReceiverDependencies {
  readonly queues: QueueClient;
  readonly clock: Clock;
  readonly pollers: number;
  /** How long an empty receive waits now. */
  readonly idleMs: () => number;
}

/** Pollers on the fake clock: admit, receive up to ten, hand over, again; an empty receive waits a step. */
function createScriptedReceiver({ queues, clock, pollers, idleMs }: ReceiverDependencies) {
  const stopping = new AbortController();
  let receives = 0;

  async function poll(handlers: Parameters<QueueReceiver['start']>[0]): Promise<void> {
    for (;;) {
      await handlers.admit(stopping.signal);
      receives += 1;
      const messages = await queues.receive(QUEUE, { visibilityS: 60, max: 10 });
      handlers.polled?.(QUEUE);
      if (messages.length > 0) await handlers.handle(messages);
      else await clock.sleep(idleMs(), stopping.signal);
    }
  }

  return {
    start(handlers: Parameters<QueueReceiver['start']>[0]) {
      for (let poller = 0; poller < pollers; poller += 1) void poll(handlers).catch(() => undefined);
    },
    async stop() {
      stopping.abort(new Error('receiving was stopped'));
    },
    /** How many receives there were. */
    get receives() {
      return receives;
    },
  };
}
