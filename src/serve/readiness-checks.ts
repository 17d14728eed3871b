/** The readiness checks of a serving process. */
import { faults, type Fault } from '../base/fault.ts';
import { FUTURE_MS } from '../ordering/constants.ts';
import { CLOCK_SKEW, differenceText } from '../connect/finding.rules.ts';
import type { Circuits, OpenCircuit } from '../observing/circuits.ts';
import type { IngestRole } from '../indexer/indexer.ts';
import type { DeadLetters } from '../repair/dead-letters.ts';
import type { QueueWatch } from '../observing/queue-watch.ts';
import { checkOfFault, OK, unknownSince, type CheckSource, type ReadinessCheck } from '../observing/readiness.ts';

interface CheckParts {
  readonly queueWatch: Pick<QueueWatch, 'fault' | 'deadLetterFault' | 'sqsAheadMs'> & {
    readonly deadLetterQueues: () => readonly unknown[];
  };
  readonly deadLetters: Pick<DeadLetters, 'sendFault'>;
  readonly circuits: Circuits;
  readonly ingest: (Pick<IngestRole, 'queueFault'> & { readonly admission: Pick<IngestRole['admission'], 'state'> }) | undefined;
  readonly prepared: () => Fault | 'prepared';
  /** The checks of the other roles. */
  readonly others: readonly CheckSource[];
}

/** Returns the checks. While S3 or the index of a bucket does not answer, its records wait and all others are served, so that is a warning. */
export function servingChecks({ queueWatch, deadLetters, circuits, ingest, prepared, others }: CheckParts): readonly CheckSource[] {
  const indexTrouble = (): { readonly fault: Fault; readonly sinceMs?: number } | undefined => {
    const preparing = prepared();
    return preparing === 'prepared' ? circuits.openOf(['cluster']) : { fault: preparing };
  };
  /** What is stored cannot be looked at, and no record is tried, while the store as a whole does not work. */
  const byIndex = (source: CheckSource): CheckSource => ({
    ...source,
    check() {
      const trouble = indexTrouble();
      return trouble === undefined ? source.check() : unknownSince(trouble.sinceMs, 'the index store does not work');
    },
  });
  const index: CheckSource = { name: 'index', neededBy: ['ingest', 'reindex', 'http'], check: () => checkOfFault(indexTrouble()?.fault) };
  const clock: CheckSource = { name: 'clock', neededBy: [], check: () => clockCheck(queueWatch.sqsAheadMs()) };
  const all = [index, ...others.map(byIndex), clock];
  if (ingest === undefined) return all;
  const storage = (): ReadinessCheck => circuitsCheck(openOf(circuits, ['endpoint', 'bucket']), 'S3');
  const bucketIndices = (): ReadinessCheck => circuitsCheck(openOf(circuits, ['index']), 'the index');
  return [
    ...all,
    byIndex({ name: 'storage', neededBy: [], check: storage }),
    byIndex({ name: 'bucket-indices', neededBy: [], check: bucketIndices }),
    { name: 'queue', neededBy: ['ingest'], check: () => checkOfFault(ingest.queueFault() ?? queueWatch.fault()) },
    byIndex({ name: 'buckets', neededBy: ['ingest'], check: () => (ingest.admission.state === 'no-bucket' ? NO_BUCKET : OK) }),
    {
      name: 'dead-letter-queue',
      neededBy: [],
      check: () => deadLetterCheck(queueWatch, deadLetters),
    },
  ];
}

function openOf(circuits: Circuits, levels: readonly OpenCircuit['level'][]): readonly OpenCircuit[] {
  return circuits.all().filter(({ level }) => levels.includes(level));
}

/** Names no bucket, since anyone who reaches the health listener can read it; `tally bucket list` and the log name them. */
function circuitsCheck(open: readonly OpenCircuit[], what: string): ReadinessCheck {
  const [first] = open;
  if (first === undefined) return OK;
  const regions = open.flatMap(({ level, name }) => (level === 'endpoint' ? [`region ${name}`] : []));
  const buckets = new Set(open.flatMap(({ level, name }) => (level === 'endpoint' ? [] : [name]))).size;
  const parts = [...regions, ...(buckets > 0 ? [`${buckets} bucket${buckets === 1 ? '' : 's'}`] : [])];
  const { code } = first.fault;
  return {
    status: 'warning',
    code,
    detail: `requests to ${what} fail for ${parts.join(', ')}: records that need it wait`,
    advice: `${faults[code].advice} Run \`tally bucket list\` to see which buckets wait.`,
  };
}

/** The process keeps SQS's time, which it does not know before SQS answers. */
function clockCheck(sqsAheadMs: number): ReadinessCheck {
  if (Math.abs(sqsAheadMs) <= FUTURE_MS) return OK;
  return {
    status: 'warning',
    code: CLOCK_SKEW,
    detail: `SQS's clock is ${differenceText(sqsAheadMs)} this machine's clock`,
    advice: "Correct the clock that is wrong. Until then, Tally uses SQS's time.",
  };
}

const NO_BUCKET: ReadinessCheck = {
  status: 'failed',
  code: 'no-bucket',
  detail: 'no bucket is connected, so Tally receives no messages',
  advice: 'Connect one with `tally bucket add NAME`; check TALLY_INDEX_PREFIX if buckets were connected before.',
};

/** Never more than a warning, because a message that cannot be dead-lettered stays in its queue. */
function deadLetterCheck(queueWatch: CheckParts['queueWatch'], { sendFault }: CheckParts['deadLetters']): ReadinessCheck {
  if (queueWatch.deadLetterQueues().length === 0) return NO_DEAD_LETTER_QUEUE;
  const check = checkOfFault(queueWatch.deadLetterFault() ?? sendFault());
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
  advice: 'Set TALLY_DEAD_LETTER_QUEUE_URL or give the bucket queue a redrive policy with maxReceiveCount 100.',
};

/** The check of what no process works on, which keeps this one from nothing. */
export function warningOf(name: string, { check }: Pick<CheckSource, 'check'>): CheckSource {
  return { name, neededBy: [], check };
}
