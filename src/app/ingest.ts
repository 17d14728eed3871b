/** The parts that only the ingest role has. */
import { getHeapStatistics } from 'node:v8';
import { createSqsReceiver } from '../adapters/aws/sqs-receiver.ts';
import type { Core } from './core.ts';
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
import type { IngestParts } from '../pipeline/ingest/role.ts';

/** Creates the parts of the ingest role, with its limits. */
export function ingestParts(core: Core, parts: Pick<IngestParts, 'handover' | 'counter'>): IngestParts {
  const { settings, bucketQueueUrls, clock } = core;
  const receiver = createSqsReceiver({
    clientFor: core.aws.sqsReceivingFor,
    queueUrls: bucketQueueUrls,
    pollers: settings.TALLY_INGEST_POLLERS,
    waitS: settings.TALLY_INGEST_WAIT_S,
    visibilityS: settings.TALLY_INGEST_VISIBILITY_S,
    clock,
  });
  return {
    ...core,
    ...parts,
    connect: core.connectBucket,
    receiver,
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
