/** The parts that only the ingest role has. */
import { getHeapStatistics } from 'node:v8';
import { createSqsReceiver } from '../adapters/aws/sqs-receiver.ts';
import { systemClock } from '../adapters/system-clock.ts';
import type { Settings } from '../settings/settings.ts';
import type { Core, Queues } from './core.ts';
import {
  BULK_ACTIONS,
  BULK_BYTES,
  BULK_CONCURRENCY,
  BULK_LINGER_MS,
  HEADS,
  HELD_HEAP_SHARE,
  HELD_MAX,
  HOLD_MAX_MS,
  IN_FLIGHT_MAX,
} from './limits.ts';
import type { Circuits } from '../pipeline/serving/circuits.ts';
import type { Handover } from '../pipeline/gaps/handover.ts';
import type { IngestParts } from '../pipeline/ingest/role.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { EventCounter } from '../pipeline/serving/event-hours.ts';

interface IngestRoleParts {
  readonly settings: Settings;
  readonly core: Core;
  readonly queues: Queues;
  readonly circuits: Circuits;
  readonly handover: Handover;
  readonly telemetry: Telemetry;
  readonly counter: EventCounter;
}

/** Creates the parts of the ingest role, with its limits. */
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
      bulk: { actionsMax: BULK_ACTIONS, bytesMax: BULK_BYTES, lingerMs: BULK_LINGER_MS, concurrency: BULK_CONCURRENCY },
      headConcurrency: HEADS,
      heldMax: HELD_MAX,
      weightMaxBytes: getHeapStatistics().heap_size_limit * HELD_HEAP_SHARE,
      holdMaxMs: HOLD_MAX_MS,
      inFlightMax: IN_FLIGHT_MAX,
      visibilityS: settings.TALLY_INGEST_VISIBILITY_S,
    },
  };
}
