/**
 * The role ingest: messages from SQS become documents.
 *
 *   aws/sqs-receiver ─► receiving ─► data-path ─────────────────────────────────────────────────────► settler
 *    receives            or not now   unwrap ► finish-record: decide ► write │ observe │ gap ► outcome   delete │ hide │ letter
 *                                     held-set: what is in hand                │ cannot be served now
 *                                                                          waiting: in hand ► hidden ► handover
 *
 * Read data-path.ts and finish-record.ts first: they are the flow. The rules by which a record is decided are pure (ordering/), and so
 * is what becomes of its message (events/outcome.ts). The other files here keep what one of the steps remembers. This file joins them,
 * starts them, and stops them:
 *
 *   stopped ──start──► receiving ──stop──► draining ──────────────────► idle
 *                                          (nothing is received, and a    │ deadline: what is left
 *                                          message that waits is given    ▼ is aborted and given back
 *                                          back to its queue)           stopped
 */
import type { Circuits } from '../observing/circuits.ts';
import type { Handover } from './handover.ts';
import { createAdmission, type Admission, createExpiredMessages } from './receiving.ts';
import { createEventBuckets, type RefreshBucket } from './event-buckets.ts';
import { createBulkWriter, type BulkLimits } from '../observing/bulk-writer.ts';
import type { Receiving } from '../observing/processes.ts';
import { createObserving } from '../observing/observer.ts';
import { createReportUnconnected, type GapReports } from '../observing/gaps.ts';
import { createHeldSet } from './held-set.ts';
import { createHiddenMessages, createWaiting } from './waiting.ts';
import { createDataPath, type SendDeadLetter } from './data-path.ts';
import { createLastEvents, type EventCounter } from './arrivals.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import type { Store, WithPorts } from '../store/store.ts';
import type { QueueClient, QueueReceiver, ConfirmSubscription } from '../aws/queues.ts';
import { endedBy, endedWithin } from '../process/async.ts';
import { createLiveLoad } from '../observing/live-load.ts';
import { createLastFailure } from '../observing/readiness.ts';
import type { QueueWatch } from '../observing/queue-watch.ts';
import { createSettler } from './settler.ts';
import type { Fault } from '../base/fault.ts';

/** How long running polls may take to end before they are aborted: an aborted poll may leave a message hidden until its visibility time-out. */
const POLL_GRACE_MS = 500;
/** How long messages wait for a loss that they show to be stored: far less than their visibility. If that fails, it is tried again later. */
const NOTING_MAX_MS = 5_000;
/** After the deadline: how long aborted work may take to end, and then how long it may take to give the remaining messages back. */
const ABORTED_GRACE_MS = 500;

/** Holding receiving back for some seconds is usual under load; only a longer time is reported. */
const HELD_BACK_MS = 60_000;

export interface IngestLimits {
  readonly bulk: BulkLimits;
  readonly headConcurrency: number;
  readonly heldMax: number;
  /** The largest weight of the messages in hand (held-set.ts). */
  readonly weightMaxBytes: number;
  readonly inFlightMax: number;
  readonly visibilityS: number;
}

export interface IngestParts extends WithPorts<'clock' | 'telemetry'> {
  readonly store: Store;
  readonly storage: ObjectStorage;
  readonly queues: QueueClient;
  readonly receiver: QueueReceiver;
  readonly confirmSubscription: ConfirmSubscription;
  readonly circuits: Circuits;
  readonly handover: Handover;
  readonly queueWatch: QueueWatch;
  readonly bucketQueueUrls: readonly string[];
  readonly connect: RefreshBucket;
  readonly gaps: GapReports;
  readonly sendDeadLetter: SendDeadLetter;
  readonly counter: Pick<EventCounter, 'event'>;
  /** Whether S3 is AWS's own. Other stores may spell keys differently, so a key that can be read in two ways is looked up in both. */
  readonly isAws: boolean;
  readonly limits: IngestLimits;
}

export interface IngestRole {
  start(): void;
  /** Stops receiving, then finishes or gives back every message in hand, at most one second after the deadline. */
  stop(deadline: AbortSignal): Promise<void>;
  readonly admission: Pick<Admission, 'state'>;
  /** Whether the live path is under load, so that re-index must yield. */
  readonly isBusy: () => boolean;
  /** How many messages were deleted since the start. */
  readonly settledTotal: number;
  /** Stores when each bucket's last event arrived. Throws the store's fault. */
  storeLastEvents(): Promise<void>;
  /** Why this role does not receive, and what it has hidden. */
  readonly receiving: Receiving;
  /** Why the last receive of a queue, or the last settlement there, failed; undefined if none did. */
  queueFault(): Fault | undefined;
}

/** Wires the role together. Nothing runs before start(). Its stop() aborts `stopping`, which ends the waits of messages in hand. */
export function createIngestRole(parts: IngestParts, stopping: AbortController): IngestRole {
  const { store, storage, queues, receiver, clock, telemetry, circuits, handover, queueWatch, connect, gaps, limits } = parts;
  const { heldMax, bulk, headConcurrency: concurrency, visibilityS } = limits;
  const common = { state: store.state, clock, telemetry };
  const aborting = new AbortController();
  const load = createLiveLoad({ clock, telemetry, heldMax, bulkConcurrency: bulk.concurrency });
  const lastReceive = (queueUrl: string): number => queueWatch.lastReceive(queueUrl);
  const held = createHeldSet({ ...limits, clock, load, lastReceive, stopping: stopping.signal });
  const settler = createSettler({ queues, clock, telemetry, visibilityS });
  const write = createBulkWriter({ objects: store.objects, clock, telemetry, circuits, limits: bulk, load });
  const shared = { storage, index: store, write, clock, telemetry, circuits, load };
  const observing = createObserving({ ...shared, concurrency, stopped: aborting.signal });
  const buckets = createEventBuckets({ ...common, connect, reportUnconnected: createReportUnconnected({ ...common, gaps }) });
  const waiting = createWaiting({ ...limits, circuits, handover, queueWatch, clock, telemetry });
  const lastEvents = createLastEvents(common);
  const hiddenMessages = createHiddenMessages(clock);
  const finish = { buckets, write, observing, gaps, circuits, lastEvents, waiting, clock };
  const handleMessages = createDataPath({ ...parts, ...common, hiddenMessages, held, settler, finish });
  const receiving = createLastFailure(clock);
  const isFailing = (): boolean => receiving.current() !== undefined;
  const admission = createAdmission({ ...common, circuits, held, queueWatch, inFlightMax: limits.inFlightMax, isFailing });
  const expired = createExpiredMessages({ ...parts, ...common });

  return {
    start() {
      receiver.start({
        admit: (signal) => admission.admit(signal),
        roomForLarge: (signal) => held.room(signal),
        async handle(messages) {
          const noted = expired.received(messages);
          if (noted !== undefined) await endedWithin(clock, NOTING_MAX_MS, noted);
          await handleMessages(messages);
        },
        polled(queueUrl) {
          receiving.succeeded(queueUrl);
          expired.polled(queueUrl);
        },
        failed(fault, queueUrl) {
          telemetry.requestFailed('receive messages', fault);
          receiving.failed(queueUrl, fault);
        },
      });
    },
    async stop(deadline) {
      await receiver.stop(POLL_GRACE_MS);
      stopping.abort(new Error('the process stops'));
      if (!(await endedBy(held.idle(), deadline))) {
        aborting.abort(new Error('the stop’s deadline has passed'));
        await endedWithin(clock, ABORTED_GRACE_MS, held.idle());
        await endedWithin(clock, ABORTED_GRACE_MS, settler.giveBackAll());
      }
      settler.close();
    },
    admission,
    isBusy: load.isBusy,
    storeLastEvents: () => lastEvents.store(),
    get settledTotal() {
      return settler.removedTotal;
    },
    receiving: {
      notReceiving(queueUrl) {
        const fault = receiving.current(queueUrl);
        if (fault !== undefined) return { fault, forMs: receiving.forMs(queueUrl) };
        const [state, forMs] = [admission.state, admission.heldBackMs()];
        const reason = `this process holds receiving back: ${state}`;
        return forMs >= HELD_BACK_MS ? { fault: { code: 'queue.not-received', reason }, forMs } : undefined;
      },
      hidden: () => hiddenMessages.byBucket(),
    },
    queueFault: () => receiving.current() ?? settler.fault(),
  };
}
