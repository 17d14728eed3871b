/** Fakes of our own ports: manual time, an S3 and queues in memory, telemetry that is only noted down. */
import { setImmediate } from 'node:timers/promises';
import type { Versioning } from '../../../src/records/bucket.ts';
import type { ObjectState, PresentState } from '../../../src/ordering/document.ts';
import { FaultError, faultOf } from '../../../src/base/fault.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import { createFakeDetails, headOf, type FakeDetails } from './details.ts';
import { createHeap } from '../heap.ts';
import type { Clock } from '../../../src/process/clock.ts';
import type { BucketListing, ObjectStorage } from '../../../src/aws/storage.ts';
import type { MetricName, Telemetry } from '../../../src/process/telemetry.ts';
import type { MessageAttribute, QueueClient, QueueMessage } from '../../../src/aws/queues.ts';

/** 2026-01-02T03:04:05Z: a whole second, far from the epoch. */
const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

interface Sleeper {
  readonly dueMs: number;
  /** Those that are due at the same moment wake in the order in which they began. */
  readonly order: number;
  readonly wake: () => void;
  isAborted: boolean;
}

export interface FakeClock extends Clock {
  /** Moves time on, waking each sleeper at its own moment and letting what it woke run. */
  advance(byMs: number): Promise<void>;
  /** Moves time on until the work has ended. Throws when nothing sleeps any more and the work has not ended. */
  runUntil<Result>(work: Promise<Result>): Promise<Result>;
  /** How many sleep now. */
  sleepers(): number;
}

interface ClockOptions {
  readonly startMs?: number;
  /** A sleep moves time at once and never waits. */
  readonly autoAdvance?: boolean;
  /** Sleeps end on a grid, so that what thousands of messages wait for is woken together. It must be finer than the times that a test asserts. */
  readonly gridMs?: number;
}

/**
 * Time that moves only by `advance` and `runUntil`. Sleepers are kept in a heap, so that a simulation of hundreds of thousands of
 * waits costs no more for each than one of a hundred.
 */
export function createFakeClock({ startMs = START_MS, autoAdvance = false, gridMs }: ClockOptions = {}): FakeClock {
  const sleeping = createHeap<Sleeper>((a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order));
  let elapsedMs = 0;
  let order = 0;
  let sleepers = 0;

  /** Lets what was woken run. Of those that were woken together, the second HEAD request sees what the first began. */
  async function settled(): Promise<void> {
    for (let turn = 0; turn < (gridMs === undefined ? 1 : 2); turn += 1) await setImmediate();
  }

  function nextSleeper(): Sleeper | undefined {
    while (sleeping.first()?.isAborted === true) sleeping.pop();
    return sleeping.first();
  }

  async function moveTo({ dueMs }: Sleeper): Promise<void> {
    elapsedMs = Math.max(elapsedMs, dueMs);
    for (;;) {
      sleeping.pop()?.wake();
      if (gridMs === undefined || nextSleeper()?.dueMs !== dueMs) break;
    }
    await settled();
  }

  async function advance(byMs: number): Promise<void> {
    const untilMs = elapsedMs + byMs;
    await settled();
    for (let next = nextSleeper(); next !== undefined && next.dueMs <= untilMs; next = nextSleeper()) await moveTo(next);
    elapsedMs = untilMs;
    await setImmediate();
  }

  async function runUntil<Result>(work: Promise<Result>): Promise<Result> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    work.then(end, end);
    await settled();
    for (;;) {
      if (isOver) return work;
      const next = nextSleeper();
      if (next === undefined) throw new Error('nothing sleeps any more, and the work has not ended');
      await moveTo(next);
    }
  }

  function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    if (autoAdvance) {
      elapsedMs += delayMs;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        sleeper.isAborted = true;
        sleepers -= 1;
        reject(signal?.reason as Error);
      };
      const wake = (): void => {
        sleepers -= 1;
        signal?.removeEventListener('abort', abort);
        resolve();
      };
      const dueMs = gridMs === undefined ? elapsedMs + delayMs : Math.ceil((elapsedMs + Math.max(1, delayMs)) / gridMs) * gridMs;
      const sleeper = { dueMs, order: (order += 1), wake, isAborted: false };
      sleepers += 1;
      sleeping.push(sleeper);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  return {
    nowMs: () => startMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    steadyMs: () => elapsedMs,
    sleep,
    advance,
    runUntil,
    sleepers: () => sleepers,
  };
}

// ── S3 ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Version {
  readonly versionId?: string;
  readonly state: ObjectState;
}

interface FakeBucket {
  readonly region: string;
  versioning: Versioning['status'];
  /** Versions of each key, the current one last; markers are absent states. */
  readonly keys: Map<string, Version[]>;
}

export interface FakeStorage extends ObjectStorage, BucketListing, FakeDetails {
  createBucket(bucket: string, options?: { readonly region?: string; readonly versioning?: Versioning['status'] }): void;
  deleteBucket(bucket: string): void;
  setVersioning(bucket: string, versioning: Versioning['status']): void;
  /** Puts an object at the clock's time and returns its state. */
  put(bucket: string, key: string, state?: Partial<Omit<PresentState, 'present'>>): PresentState;
  /** Deletes as S3 does: the object, or by a marker where versioning is enabled. */
  delete(bucket: string, key: string): void;
  /** Etags of the present objects, by key. */
  etags(bucket: string): ReadonlyMap<string, string | undefined>;
  /** Every request that matches throws this until it is cleared with undefined. */
  failWith(fault: FaultError | undefined, matches?: { readonly bucket?: string; readonly key?: string }): void;
  /** What was observed so far, as `bucket/key`. */
  readonly observed: string[];
  /** Keys whose HEAD fails while LIST answers. */
  readonly headless: Set<string>;
}

/** The present objects in the order of a listing. */
function presentIn({ keys }: FakeBucket): readonly { readonly key: string; readonly state: PresentState }[] {
  const present = [...keys].flatMap(([key, versions]) => {
    const state = versions.at(-1)?.state;
    return state?.present === true ? [{ key, state }] : [];
  });
  return present.sort((a, b) => compareKeys(a.key, b.key));
}

/** An S3 in memory. Its Date header has whole seconds, as the real one's. */
export function createFakeStorage(clock: Clock): FakeStorage {
  const buckets = new Map<string, FakeBucket>();
  const observed: string[] = [];
  const headless = new Set<string>();
  let failure: { readonly fault: FaultError; readonly bucket?: string; readonly key?: string } | undefined;
  let count = 0;

  const dateMs = (): number => Math.floor(clock.nowMs() / 1_000) * 1_000;

  function bucketOf(name: string, key?: string): FakeBucket {
    if (failure !== undefined && (failure.bucket ?? name) === name && (failure.key ?? key) === key) throw failure.fault;
    return existing(name);
  }

  function existing(name: string): FakeBucket {
    const bucket = buckets.get(name);
    if (bucket === undefined) throw new FaultError('bucket.missing', `no bucket ${name}`);
    return bucket;
  }

  function push(name: string, key: string, state: ObjectState): void {
    const bucket = existing(name);
    const versions = bucket.keys.get(key) ?? [];
    if (bucket.versioning === 'enabled') bucket.keys.set(key, [...versions, { versionId: `v${count}`, state }]);
    else bucket.keys.set(key, state.present ? [{ state }] : []);
  }

  return {
    ...createFakeDetails((name, key) => bucketOf(name, key).keys.get(key) ?? []),
    observed,
    createBucket: (bucket, options = {}) => {
      buckets.set(bucket, { region: options.region ?? 'us-east-1', versioning: options.versioning ?? 'never', keys: new Map() });
    },
    deleteBucket: (bucket) => void buckets.delete(bucket),
    setVersioning: (bucket, versioning) => {
      existing(bucket).versioning = versioning;
    },
    put: (bucket, key, state = {}) => {
      count += 1;
      const present: PresentState = {
        present: true,
        etag: `etag-${count}`,
        sizeBytes: count,
        lastModifiedMs: dateMs(),
        userMetadata: {},
        ...(existing(bucket).versioning === 'enabled' && { versionId: `v${count}` }),
        ...state,
      };
      push(bucket, key, present);
      return present;
    },
    delete: (bucket, key) => {
      count += 1;
      push(bucket, key, { present: false });
    },
    failWith: (fault, matches = {}) => {
      failure = fault === undefined ? undefined : { fault, ...matches };
    },
    headless,
    readState: async ({ bucket }, key, signal, how) => {
      signal?.throwIfAborted();
      if (headless.has(key) && how?.byListing !== true) throw new FaultError('s3.unavailable', `HEAD ${key}: 500`);
      observed.push(`${bucket}/${key}`);
      const state = bucketOf(bucket, key).keys.get(key)?.at(-1)?.state ?? { present: false };
      return { state: headOf(state), observedAtMs: dateMs() };
    },
    etags: (bucket) => new Map(presentIn(existing(bucket)).map(({ key, state }) => [key, state.etag])),
    firstKey: async ({ bucket }) => presentIn(bucketOf(bucket))[0]?.key,
    page: async ({ bucket }, { prefix, after, limit }) => {
      const following = presentIn(bucketOf(bucket)).filter(({ key }) => key.startsWith(prefix) && compareKeys(key, after) > 0);
      const objects = following.slice(0, limit).map(({ key, state }) => {
        const { userMetadata: _, tags: __, ...listed } = state;
        return { key, state: listed };
      });
      return { objects, observedAtMs: dateMs(), isTruncated: following.length > objects.length };
    },
    regionOf: async (bucket) => bucketOf(bucket).region,
    versioningOf: async ({ bucket }) => {
      const status = bucketOf(bucket).versioning;
      return { status, observedAtMs: status === 'unknown' ? 0 : dateMs() };
    },
  };
}

// ── queues ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface FakeMessage {
  readonly messageId: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, MessageAttribute>>;
  readonly sentAtMs: number;
  firstReceivedAtMs: number | undefined;
  receiveCount: number;
  receiptHandle: string | undefined;
  visibleAtMs: number;
}

interface FakeQueue {
  /** Oldest first. */
  readonly messages: Set<FakeMessage>;
  readonly byHandle: Map<string, FakeMessage>;
  /** No message is visible before. */
  nextVisibleAtMs: number;
}

export interface FakeQueues extends QueueClient {
  /** The messages of a queue, hidden ones included, oldest first. */
  messages(queueUrl: string): readonly Readonly<FakeMessage>[];
  /** The message of this receive, unless it is gone or was received again. */
  byHandle(queueUrl: string, receiptHandle: string): Readonly<FakeMessage> | undefined;
  /** Sends to this queue fail until it is allowed again. */
  failSends(queueUrl: string | undefined): void;
}

/** SQS in memory: queues exist by being named; visibility runs on the clock's wall time; an old receipt handle is refused; the settings hold for each queue. */
export function createFakeQueues(
  clock: Clock,
  settings: { readonly maxReceiveCount?: number; readonly deadLetterQueueUrl?: string; readonly retentionMs?: number } = {},
): FakeQueues {
  const queues = new Map<string, FakeQueue>();
  let failingUrl: string | undefined;
  let count = 0;

  const queueOf = (queueUrl: string): FakeQueue => {
    const queue = queues.get(queueUrl) ?? { messages: new Set(), byHandle: new Map(), nextVisibleAtMs: Infinity };
    queues.set(queueUrl, queue);
    return queue;
  };
  const unknownHandle = (receiptHandle: string) => ({ receiptHandle, code: 'ReceiptHandleIsInvalid', senderFault: true });

  function add(queue: FakeQueue, message: FakeMessage): void {
    queue.messages.add(message);
    seenAt(queue, message);
  }

  function seenAt(queue: FakeQueue, { visibleAtMs }: FakeMessage): void {
    queue.nextVisibleAtMs = Math.min(queue.nextVisibleAtMs, visibleAtMs);
  }

  function remove({ messages, byHandle }: FakeQueue, message: FakeMessage): void {
    messages.delete(message);
    if (message.receiptHandle !== undefined) byHandle.delete(message.receiptHandle);
  }

  /** Simulated outages hide thousands of messages, and look for one that is visible a hundred thousand times. */
  function visibleIn(queue: FakeQueue): readonly FakeMessage[] {
    const nowMs = clock.nowMs();
    if (nowMs < queue.nextVisibleAtMs) return [];
    const visible: FakeMessage[] = [];
    queue.nextVisibleAtMs = Infinity;
    for (const message of queue.messages) {
      if (message.visibleAtMs <= nowMs) visible.push(message);
      seenAt(queue, message);
    }
    return visible.sort((a, b) => a.visibleAtMs - b.visibleAtMs);
  }

  function take(queueUrl: string, message: FakeMessage, visibilityS: number): QueueMessage {
    count += 1;
    const { byHandle } = queueOf(queueUrl);
    if (message.receiptHandle !== undefined) byHandle.delete(message.receiptHandle);
    message.receiptHandle = `handle-${count}`;
    byHandle.set(message.receiptHandle, message);
    message.receiveCount += 1;
    message.firstReceivedAtMs ??= clock.nowMs();
    message.visibleAtMs = clock.nowMs() + visibilityS * 1_000;
    return {
      queueUrl,
      messageId: message.messageId,
      receiptHandle: message.receiptHandle,
      body: message.body,
      attributes: message.attributes,
      sentAtMs: message.sentAtMs,
      firstReceivedAtMs: message.firstReceivedAtMs,
      receiveCount: message.receiveCount,
      receivedAtMonotonicMs: clock.monotonicMs(),
    };
  }

  /** Whether the message was received as often as the redrive policy permits, and has moved. */
  function hasMoved(queueUrl: string, message: FakeMessage): boolean {
    const { maxReceiveCount = Infinity, deadLetterQueueUrl } = settings;
    if (deadLetterQueueUrl === undefined || queueUrl === deadLetterQueueUrl || message.receiveCount < maxReceiveCount) return false;
    remove(queueOf(queueUrl), message);
    add(queueOf(deadLetterQueueUrl), message);
    return true;
  }

  return {
    messages: (queueUrl) => [...queueOf(queueUrl).messages],
    byHandle: (queueUrl, receiptHandle) => queueOf(queueUrl).byHandle.get(receiptHandle),
    failSends: (queueUrl) => {
      failingUrl = queueUrl;
    },
    send: async (queueUrl, message) => {
      if (failingUrl === queueUrl) throw new FaultError('queue.unreachable', `no answer from ${queueUrl}`);
      count += 1;
      const messageId = `message-${count}`;
      const sentAtMs = clock.nowMs();
      add(queueOf(queueUrl), {
        ...message,
        messageId,
        sentAtMs,
        visibleAtMs: sentAtMs + (message.delayS ?? 0) * 1_000,
        firstReceivedAtMs: undefined,
        receiveCount: 0,
        receiptHandle: undefined,
      });
      return messageId;
    },
    receive: async (queueUrl, { visibilityS, max }, signal) => {
      signal?.throwIfAborted();
      return visibleIn(queueOf(queueUrl))
        .slice(0, max)
        .flatMap((message) => (hasMoved(queueUrl, message) ? [] : [take(queueUrl, message, visibilityS)]));
    },
    deleteBatch: async (queueUrl, receiptHandles) =>
      receiptHandles.flatMap((receiptHandle) => {
        const queue = queueOf(queueUrl);
        const message = queue.byHandle.get(receiptHandle);
        if (message === undefined) return [unknownHandle(receiptHandle)];
        remove(queue, message);
        return [];
      }),
    changeVisibilityBatch: async (queueUrl, entries) =>
      entries.flatMap(({ receiptHandle, timeoutS }) => {
        const queue = queueOf(queueUrl);
        const message = queue.byHandle.get(receiptHandle);
        if (message === undefined) return [unknownHandle(receiptHandle)];
        message.visibleAtMs = clock.nowMs() + timeoutS * 1_000;
        seenAt(queue, message);
        return [];
      }),
    attributes: async (queueUrl) => {
      const { messages } = queueOf(queueUrl);
      const hidden = [...messages].filter((message) => message.visibleAtMs > clock.nowMs()).length;
      return { visible: messages.size - hidden, inFlight: hidden, delayed: 0, visibilityTimeoutS: 30, ...settings };
    },
  };
}

// ── telemetry ─────────────────────────────────────────────────────────────────────────────────────────────────────

export interface FakeTelemetry extends Telemetry {
  /** Every call so far, in order. */
  readonly facts: readonly { readonly name: keyof Telemetry; readonly args: readonly unknown[] }[];
  /** The arguments of every call of one method. */
  recorded<Name extends keyof Telemetry>(name: Name): readonly Parameters<Telemetry[Name]>[];
  /** The labels of every change of one counter or gauge. */
  labels(metric: MetricName): readonly Readonly<Record<string, string>>[];
  /** The number of every change of one metric. */
  values(metric: MetricName): readonly number[];
  /** The fields of every line with this message. */
  logged(message: string): readonly Readonly<Record<string, unknown>>[];
}

/** What a failed request is logged with. */
function shownArgs(name: string, args: readonly unknown[]): readonly unknown[] {
  if (name !== 'requestFailed') return args;
  const { code, reason } = faultOf(args[1]);
  return [args[0], code, reason];
}

/** Notes down each call and does nothing else. */
export function createFakeTelemetry(): FakeTelemetry {
  const facts: { name: keyof Telemetry; args: readonly unknown[] }[] = [];
  const argsOf = (first: string) => facts.flatMap(({ args: [name, ...others] }) => (name === first ? [others] : []));
  const reads: Readonly<Record<string, unknown>> = {
    facts,
    recorded: (name: keyof Telemetry) => facts.filter((fact) => fact.name === name).map((fact) => fact.args),
    labels: (metric: MetricName) => argsOf(metric).map(([, labels = {}]) => labels),
    values: (metric: MetricName) => argsOf(metric).map(([value]) => value),
    logged: (message: string) => argsOf(message).map((args) => args.find((arg) => typeof arg === 'object') ?? {}),
  };
  const notes = {
    get: (_target: object, name: string) =>
      reads[name] ?? ((...args: unknown[]) => void facts.push({ name: name as keyof Telemetry, args: shownArgs(name, args) })),
  };
  return new Proxy({}, notes) as FakeTelemetry;
}
