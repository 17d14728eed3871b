/** The readiness checks of a serving process. */
import type { Fault } from '../domain/fault.ts';
import type { FaultGate } from '../pipeline/serving/fault-gate.ts';
import type { IngestRole } from '../pipeline/ingest/role.ts';
import type { QueueWatch } from '../pipeline/queues/watch.ts';
import { checkOfFault, OK, type CheckSource, type ReadinessCheck } from '../pipeline/serving/readiness.ts';

interface CheckParts {
  readonly queueWatch: QueueWatch;
  readonly gate: FaultGate;
  readonly ingest: IngestRole | undefined;
  readonly prepared: () => Fault | 'prepared';
  /** The checks of the other roles. */
  readonly others: readonly CheckSource[];
}

/** Returns the checks. If S3 is unreachable, only ingest is not ready; searches and stored records still work. */
export function servingChecks({ queueWatch, gate, ingest, prepared, others }: CheckParts): readonly CheckSource[] {
  const indexFault = (): Fault | undefined => {
    const preparing = prepared();
    return preparing === 'prepared' ? gate.closedBy().get('index') : preparing;
  };
  const index: CheckSource = { name: 'index', neededBy: ['ingest', 'reindex', 'http'], check: () => checkOfFault(indexFault()) };
  const all = [index, ...others];
  if (ingest === undefined) return all;
  return [
    ...all,
    { name: 'storage', neededBy: ['ingest'], check: () => checkOfFault(gate.closedBy().get('s3')) },
    { name: 'queue', neededBy: ['ingest'], check: () => checkOfFault(ingest.receiveFault() ?? queueWatch.fault()) },
    { name: 'buckets', neededBy: ['ingest'], check: () => (ingest.admission.state === 'no-bucket' ? NO_BUCKET : OK) },
    {
      name: 'dead-letter-queue',
      neededBy: [],
      check: () => deadLetterCheck(queueWatch),
    },
  ];
}

const NO_BUCKET: ReadinessCheck = {
  status: 'failed',
  code: 'no-bucket',
  detail: 'no bucket is connected, so no messages are received',
  advice: 'Connect one with `tally bucket add NAME`, or set TALLY_AUTO_CONNECT=true; check TALLY_INDEX_PREFIX if buckets were connected.',
};

/** Never more than a warning, because a message that cannot be dead-lettered stays in its queue. */
function deadLetterCheck(queueWatch: QueueWatch): ReadinessCheck {
  if (queueWatch.deadLetterQueues().length === 0) return NO_DEAD_LETTER_QUEUE;
  const check = checkOfFault(queueWatch.deadLetterFault());
  return check.status === 'ok'
    ? OK
    : {
        ...check,
        status: 'warning',
        advice: 'Check TALLY_DEAD_LETTER_QUEUE_URL, the redrive policies of the bucket queues, and the permissions.',
      };
}

const NO_DEAD_LETTER_QUEUE: ReadinessCheck = {
  status: 'warning',
  code: 'queue.no-dead-letter',
  detail: 'no dead-letter queue is known: the bucket queue has no redrive policy, or GetQueueUrl of its target is denied',
  advice: 'Set TALLY_DEAD_LETTER_QUEUE_URL or give the bucket queue a redrive policy with maxReceiveCount 20.',
};
