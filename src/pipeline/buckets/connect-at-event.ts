/**
 * Connects buckets at their first events. A name that cannot be connected must cost no other bucket anything:
 *
 *   event ─► remembered failure? ──yes──► its answer
 *      │ no
 *      └─► room in the held set? ──no──► later ── yes ─► joins the attempt of its name ─► record │ not connected │ fault
 *
 * Attempts of several names run side by side, each with a time-out. Every failure is remembered for half a minute, so a flood of
 * events of one name sends few requests.
 */
import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import type { BucketRecord, BucketSource } from '../../domain/bucket.ts';
import { circuitOf, FaultError, faultOf, type Fault } from '../../domain/fault.ts';
import { dialectFacts, type ChangeRecord } from '../../domain/events/record.ts';
import { RequestError } from '../../domain/request-error.ts';
import { inTime } from '../../domain/in-time.ts';
import { withDeadline } from '../serving/async.ts';
import type { ConnectBucket } from './connect.ts';
import type { WithPorts } from '../ports/ports.ts';

/** How long a failure answers for its name. S3 gets two requests a minute for it, and a bucket is connected that soon after its cause has gone. */
const FAILURE_AGE_MAX_MS = 30_000;
/** Names may be anything that is sent to the queue. */
const FAILURES_MAX = 1_000;
/** How many names are connected at the same time: 300 that hang have had their turn within ten minutes, and each sends one request at a time. */
const CONNECTS_MAX = 16;
/** Two attempts of a request to S3 and the making of an index. One that takes longer would keep its place from others. */
const CONNECT_MAX_MS = 30_000;
/** How many names wait for their turn. One message may name thousands of buckets. */
const NAMES_MAX = 1_000;
/** A name that has not failed goes first, so that a bucket that can be connected does not wait for those that cannot. */
const FIRST = 1;
const LATER = 0;

/** What an event finds: the record of its bucket, no bucket that could be connected, or a fault for which it has to wait. */
export type Found =
  | { readonly kind: 'connected'; readonly bucket: BucketRecord }
  | { readonly kind: 'unconnected' }
  | { readonly kind: 'unconnectable'; readonly fault: Fault };

/** The place of a message that waits. */
export interface Waits {
  /** Takes room in the held set for a record that waits. Returns the function that gives it back, or undefined if there is none. */
  enter(): (() => void) | undefined;
  readonly signal: AbortSignal;
}

/** Throws the faults of the index store as a whole, and the signal's reason. */
export type ConnectAtEvent = (record: ChangeRecord, waits: Waits) => Promise<Found>;

interface ConnectAtEventDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly connect: Pick<ConnectBucket, 'autoConnect'>;
  /** The record of a bucket that is connected by now. */
  readonly lookup: (bucket: string) => Promise<BucketRecord | undefined>;
  /** Called when a bucket was connected. */
  readonly connected: (bucket: string) => void;
  /** How many buckets may be connected, however they were; 0: none is connected at its first event. */
  readonly max: number;
}

type Failure = Exclude<Found, { readonly kind: 'connected' }>;

export function createConnectAtEvent(dependencies: ConnectAtEventDependencies): ConnectAtEvent {
  const { connect, lookup, connected, clock, telemetry, max } = dependencies;
  const turns = new PQueue({ concurrency: CONNECTS_MAX });
  const attempts = new Map<string, Promise<Found>>();
  const failures = new LRUCache<string, { readonly failure: Failure; readonly atMs: number }>({ max: FAILURES_MAX });
  /** The attempts that have passed the maximum and may still store a record. */
  const running = new Set<Promise<unknown>>();

  function remembered(bucket: string): Failure | undefined {
    const known = failures.get(bucket);
    return known !== undefined && clock.monotonicMs() - known.atMs <= FAILURE_AGE_MAX_MS ? known.failure : undefined;
  }

  function remember(bucket: string, failure: Failure): Failure {
    failures.set(bucket, { failure, atMs: clock.monotonicMs() });
    return failure;
  }

  function attempt({ bucket, dialect }: ChangeRecord): Promise<Found> {
    const known = attempts.get(bucket);
    if (known !== undefined) return known;
    const priority = failures.has(bucket) ? LATER : FIRST;
    const promise = turns
      .add(() => atItsTurn(bucket, dialectFacts[dialect].bucketSources[0]), { priority })
      .finally(() => attempts.delete(bucket));
    // each event that waits for it may have been aborted
    promise.catch(() => undefined);
    attempts.set(bucket, promise);
    return promise;
  }

  async function atItsTurn(bucket: string, source: BucketSource): Promise<Found> {
    // another process may have connected it meanwhile
    const known = await lookup(bucket);
    if (known !== undefined) return { kind: 'connected', bucket: known };
    try {
      const record = await withinMaximum(bucket, source);
      if (record === undefined) return remember(bucket, { kind: 'unconnected' });
      failures.delete(bucket);
      connected(bucket);
      return { kind: 'connected', bucket: record };
    } catch (error) {
      return remember(bucket, failureOf(error));
    }
  }

  /** Connects the bucket unless as many exist. What runs beside it counts as if it existed, until it has ended. */
  async function withinMaximum(bucket: string, source: BucketSource): Promise<BucketRecord | undefined> {
    for (;;) {
      const others = [...running];
      const late = (): Error => new FaultError('bucket.connecting', `${bucket} could not be connected within ${CONNECT_MAX_MS / 1_000} s`);
      const work = withDeadline(clock, { maxMs: CONNECT_MAX_MS, late }, (signal) =>
        connect.autoConnect(bucket, source, max - others.length, signal),
      );
      running.add(work);
      const record = await work.finally(() => running.delete(work));
      if (record !== undefined || others.length === 0) return record;
      await Promise.race(others).catch(() => undefined);
    }
  }

  /** What becomes of the name. A fault of the whole index store is no failure of the name, and its circuit decides who waits. */
  function failureOf(error: unknown): Failure {
    // a name that no bucket can have, or that no bucket has, does not become one by waiting
    if (error instanceof RequestError) return { kind: 'unconnected' };
    const fault = faultOf(error);
    if (fault.code === 'bucket.missing') return { kind: 'unconnected' };
    if (circuitOf(fault.code) === 'cluster') throw error;
    telemetry.requestFailed('connect a bucket at its first event', error);
    return { kind: 'unconnectable', fault };
  }

  return async function connectAtEvent(record, waits) {
    if (max === 0) return { kind: 'unconnected' };
    const failure = remembered(record.bucket);
    if (failure !== undefined) return failure;
    const isKnown = attempts.has(record.bucket);
    const leave = isKnown || attempts.size < NAMES_MAX ? waits.enter() : undefined;
    if (leave === undefined) return { kind: 'unconnectable', fault: crowded(record.bucket) };
    try {
      return await inTime(attempt(record), waits.signal);
    } finally {
      leave();
    }
  };
}

function crowded(bucket: string): Fault {
  return {
    code: 'bucket.connecting',
    reason: `${bucket} is not connected yet, and more of its events may not wait for it in this process`,
  };
}
