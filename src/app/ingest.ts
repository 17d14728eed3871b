/** The parts that only the ingest role has. */
import { getHeapStatistics } from 'node:v8';
import { createSqsReceiver } from '../adapters/aws/sqs-receiver.ts';
import { systemClock } from '../adapters/system-clock.ts';
import type { Settings } from '../settings/settings.ts';
import type { Core, Queues } from './core.ts';
import type { Circuits } from '../pipeline/serving/circuits.ts';
import type { Handover } from '../pipeline/gaps/handover.ts';
import type { IngestParts } from '../pipeline/ingest/role.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { EventCounter } from '../pipeline/serving/event-hours.ts';

/** V8 derives its heap limit from the memory of the container. The other three quarters are for one large message, for re-index and for garbage. */
const HEAP_SHARE = 0.25;

interface IngestRoleParts {
  readonly settings: Settings;
  readonly core: Core;
  readonly queues: Queues;
  readonly circuits: Circuits;
  readonly handover: Handover;
  readonly telemetry: Telemetry;
  readonly counter: EventCounter;
}

/** Creates the parts and limits of the ingest role from the settings. */
export function ingestParts({ settings, core, queues, circuits, handover, telemetry, counter }: IngestRoleParts): IngestParts {
  const clock = systemClock;
  const receiver = createSqsReceiver({
    clientFor: core.aws.sqsReceivingFor,
    queueUrls: queues.bucket,
    pollers: settings.TALLY_INGEST_POLLERS,
    waitS: settings.TALLY_INGEST_WAIT_S,
    visibilityS: settings.TALLY_INGEST_VISIBILITY_S,
    clock,
  });
  return {
    ...core,
    connect: core.connectBucket,
    receiver,
    circuits,
    handover,
    bucketQueueUrls: queues.bucket,
    clock,
    telemetry,
    counter,
    topics: core.topics,
    sendDeadLetter: core.deadLetters.send,
    limits: {
      bulk: {
        actionsMax: settings.TALLY_BULK_ACTIONS,
        bytesMax: settings.TALLY_BULK_BYTES,
        lingerMs: settings.TALLY_BULK_LINGER_MS,
        concurrency: settings.TALLY_BULK_CONCURRENCY,
      },
      headConcurrency: settings.TALLY_S3_HEAD_CONCURRENCY,
      heldMax: settings.TALLY_INGEST_HELD_MAX,
      weightMaxBytes: getHeapStatistics().heap_size_limit * HEAP_SHARE,
      holdMaxMs: settings.TALLY_INGEST_HOLD_MAX_MS,
      inFlightMax: settings.TALLY_INGEST_IN_FLIGHT_MAX,
      visibilityS: settings.TALLY_INGEST_VISIBILITY_S,
    },
  };
}
