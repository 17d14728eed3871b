/**
 * The ingest role: the parts of the data path, joined, with their start and stop.
 *
 *   stopped ──start──► receiving ──stop──► draining (no receives, waits give back) ──► idle │ deadline: given back
 */
import type { FaultGate, Probe } from '../serving/fault-gate.ts';
import { createAdmission, type Admission } from './admission.ts';
import { createBucketAccess } from '../buckets/access.ts';
import { createBucketRegistry } from '../buckets/record-cache.ts';
import { createBulkWriter, type BulkLimits } from '../looks/bulk-writer.ts';
import type { ConnectBucket } from '../buckets/connect.ts';
import type { SendDeadLetter } from '../letters/letters.ts';
import { createLooks } from '../looks/create.ts';
import { withPlainFallback } from '../looks/plain-fallback.ts';
import { createFinishRecord } from './finish-record.ts';
import { createUnconnectedReports, type GapReports } from '../gaps/reports.ts';
import { createHeldSet } from './in-hand.ts';
import { createIngest } from './handle-messages.ts';
import { createLastEvents } from '../buckets/last-events.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueClient, QueueReceiver, TopicClient } from '../ports/queues.ts';
import type { Tracing } from '../ports/tracing.ts';
import { createParking } from './parking.ts';
import type { QueueWatch } from '../queues/watch.ts';
import { createFinishServiceMessage } from './service-messages.ts';
import { createSettler } from '../queues/settler.ts';
import { traceWrites } from '../looks/trace-writes.ts';
import { createToldKeys } from '../gaps/told-keys.ts';
import { createWaitOut, type FaultContext } from './wait-out.ts';
import type { Fault } from '../../domain/fault.ts';

/** Running long polls may end for this long before they are aborted: an aborted poll can swallow a message until its visibility timeout. */
const POLL_GRACE_MS = 500;
/** After the deadline, for what was aborted to come to its end; and then for SQS to take back what did not. */
const ABORTED_GRACE_MS = 500;

export interface IngestLimits {
  readonly bulk: BulkLimits;
  readonly headConcurrency: number;
  readonly heldMax: number;
  readonly holdMaxMs: number;
  readonly inFlightMax: number;
  readonly visibilityS: number;
  /** 0: buckets are not connected by themselves. */
  readonly autoConnectMax: number;
}

export interface IngestParts {
  readonly store: Store;
  readonly storage: ObjectStorage;
  readonly queues: QueueClient;
  readonly receiver: QueueReceiver;
  readonly topics: TopicClient;
  readonly gate: FaultGate;
  readonly probeIndex: Probe;
  readonly queueWatch: QueueWatch;
  readonly connect: ConnectBucket;
  readonly gaps: GapReports;
  readonly sendDeadLetter: SendDeadLetter;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly tracing: Tracing;
  readonly limits: IngestLimits;
}

export interface IngestRole {
  start(): void;
  /** Stops receiving, finishes or gives back what is in hand; all by the deadline and a second. */
  stop(deadline: AbortSignal): Promise<void>;
  readonly admission: Pick<Admission, 'state'>;
  /** Messages settled for good since the start. */
  readonly settledTotal: number;
  /** Stores when each bucket's last event arrived. Throws the store's fault. */
  storeLastEvents(): Promise<void>;
  /** Why the last receive failed; undefined when it did not. */
  receiveFault(): Fault | undefined;
}

/** Joins the parts; nothing runs before start(). `stopping` ends the waits of messages in hand; this role aborts it. */
export function createIngestRole(parts: IngestParts, stopping: AbortController): IngestRole {
  const { store, storage, queues, receiver, clock, telemetry, gate, probeIndex, queueWatch, connect, gaps, tracing, limits } = parts;
  const aborting = new AbortController();
  const maxReceiveCount = (queueUrl: string): number => queueWatch.maxReceiveCount(queueUrl);
  const held = createHeldSet({ ...limits, clock, telemetry, tracing, maxReceiveCount, stopping: stopping.signal });
  const settler = createSettler({ queues, clock, telemetry, visibilityS: limits.visibilityS });
  const writer = withPlainFallback(
    createBulkWriter({ objects: traceWrites(store.objects, tracing), clock, telemetry, limits: limits.bulk }),
    telemetry,
  );
  const stopped = aborting.signal;
  const { observe, enricher } = createLooks({ storage, writer, clock, telemetry, concurrency: limits.headConcurrency, stopped });
  const registry = createBucketRegistry({ state: store.state, clock });
  const unconnected = createUnconnectedReports({ state: store.state, clock, telemetry, gaps });
  const buckets = createBucketAccess({ registry, state: store.state, clock, connect, unconnected, autoConnectMax: limits.autoConnectMax });
  const probes = { index: probeIndex, storage: probeStorage };
  const parking = createParking({ clock, telemetry, parkedMax: Math.ceil(limits.heldMax / 2) });
  const waitOut = createWaitOut({ gate, clock, probes, parking });
  const lastEvents = createLastEvents({ state: store.state, clock });
  const toldKeys = createToldKeys({ gaps, clock });
  const finishRecord = createFinishRecord({ buckets, writer, observe, enricher, gaps, toldKeys, parking, lastEvents, waitOut, clock });
  const finishServiceMessage = createFinishServiceMessage({ state: store.state, topics: parts.topics, gaps, waitOut, clock, telemetry });
  const ingest = createIngest({ ...parts, held, settler, finishRecord, finishServiceMessage, waitOut, maxReceiveCount });
  const admission = createAdmission({
    gate,
    held,
    queueWatch,
    clock,
    telemetry,
    probeIndex,
    store: store.state,
    inFlightMax: limits.inFlightMax,
    autoConnects: limits.autoConnectMax > 0,
  });
  let lastFault: Fault | undefined;

  function probeStorage({ bucket, region }: FaultContext): Probe {
    return (signal) =>
      region === undefined ? storage.regionOf(bucket, signal).then(() => undefined) : storage.probe({ bucket, region }, signal);
  }

  async function idleBy(signal: AbortSignal): Promise<boolean> {
    const aborted = new Promise<false>((resolve) => {
      if (signal.aborted) resolve(false);
      signal.addEventListener('abort', () => resolve(false), { once: true });
    });
    return Promise.race([held.idle().then(() => true), aborted]);
  }

  /** Resolves when the work has ended or the grace is over, whichever comes first. */
  async function withinGrace(work: Promise<void>): Promise<void> {
    const ended = new AbortController();
    try {
      await Promise.race([work, clock.sleep(ABORTED_GRACE_MS, ended.signal)]);
    } finally {
      ended.abort(new Error('ended in time'));
    }
  }

  return {
    start() {
      receiver.start({
        admit: (signal) => admission.admit(signal),
        handle: ingest,
        polled: () => {
          lastFault = undefined;
        },
        failed: (fault) => {
          if (lastFault?.reason !== fault.reason) telemetry.requestFailed('receive messages', fault.code, fault.reason);
          lastFault = { code: fault.code, reason: fault.reason };
        },
      });
    },
    async stop(deadline) {
      await receiver.stop(POLL_GRACE_MS);
      stopping.abort(new Error('the process stops'));
      if (!(await idleBy(deadline))) {
        aborting.abort(new Error('the stop’s deadline has passed'));
        await withinGrace(held.idle());
        await withinGrace(settler.giveBackAll());
      }
      settler.close();
    },
    admission,
    storeLastEvents: () => lastEvents.store(),
    get settledTotal() {
      return settler.removedTotal;
    },
    receiveFault: () => lastFault,
  };
}
