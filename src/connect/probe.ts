/**
 * The probe: a message that the watch publishes hourly to each of Tally's own topics. It takes the events' path from the topic on, so its
 * arrival shows that the subscription, policies, keys and queue still deliver.
 *
 *   sent ──arrived──► arrived ──an hour later──► sent
 *     └──ten minutes, and it does not wait in the queue──► lost ──one arrives──► arrived
 */
import { probeText } from '../events/envelope.ts';
import { bucketRecordSchema, type ConnectionSpec } from '../records/bucket.ts';
import type { ProbeRecord } from '../records/receiving.ts';
import type { WithPorts } from '../store/store.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../store/stored.ts';
import type { Provisioner } from './aws/provisioner.ts';
import { broken, type Finding } from './finding.rules.ts';
import type { ObservedQueue } from './plan.rules.ts';
import { desired } from './sources/sources.ts';

const EVERY_MS = 3_600_000;
/** SNS delivers within seconds, and retries for some minutes. */
const LOST_MS = 600_000;

export const PROBE_LOST = 'connect.probe-lost';

/** One that is known to be lost is soon followed by another. Until that is known it stands, for the checks of all buckets whose topic it is. */
function isProbeDue(last: ProbeRecord | undefined, isLost: boolean, nowMs: number): boolean {
  const everyMs = last?.hasArrived === false && (isLost || last.isLost) ? LOST_MS : EVERY_MS;
  return last === undefined || Math.abs(nowMs - last.sentAtMs) >= everyMs;
}

/** Finds that the last probe of the bucket's topic was lost. Throws the store's fault. */
export async function probeFindings(
  { state, clock }: WithPorts<'state' | 'clock'>,
  spec: ConnectionSpec,
  queue: ObservedQueue | undefined,
): Promise<readonly Finding[]> {
  const topicArn = ownTopicOf(spec);
  const last = topicArn === undefined ? undefined : await readRecord(state, refs.probe(topicArn));
  if (last === undefined || last.hasArrived) return [];
  const { sentAtMs } = last;
  if (!last.isLost && (clock.nowMs() - sentAtMs < LOST_MS || (await mayWaitIn({ state, clock }, queue, sentAtMs)))) return [];
  return [
    broken(
      PROBE_LOST,
      `the message that Tally published through ${topicArn} at ${new Date(sentAtMs).toISOString()} has not reached the bucket queue`,
      'all parts are in place, but something denies the delivery: a Deny in the policy of the topic or the queue, or a KMS key policy that does not let SNS use the key',
      `aws sns get-topic-attributes --topic-arn ${topicArn}`,
    ),
  ];
}

/** Whether the probe may be waiting in the queue for a worker: not if that is empty, or if all that came lately was sent ten minutes later. */
async function mayWaitIn(
  { state, clock }: WithPorts<'state' | 'clock'>,
  queue: ObservedQueue | undefined,
  sentAtMs: number,
): Promise<boolean> {
  if (Number(queue?.attributes['ApproximateNumberOfMessages']) === 0) return false;
  const notes = (await listAllRecords(state, 'bucket', bucketRecordSchema)).flatMap(({ eventQueues = [] }) => eventQueues);
  const late = notes.filter(({ queueUrl, atMs }) => queueUrl === queue?.url && clock.nowMs() - atMs < LOST_MS);
  return late.length === 0 || late.some(({ sentFromMs = 0 }) => sentFromMs < sentAtMs + LOST_MS);
}

/** Tally's own topic on the path of the bucket's events; undefined if there is none. */
export function ownTopicOf(spec: ConnectionSpec): string | undefined {
  return spec.topicArn === undefined ? desired(spec).subscription?.topicArn : undefined;
}

/**
 * Publishes a probe if one is due and the bucket's topic is Tally's. `isLost`: the last one did not arrive. It is stored first, because it
 * may arrive at once. Throws what AWS refuses, and the store's fault.
 */
export async function sendProbe(
  { state, clock, aws }: WithPorts<'state' | 'clock'> & { readonly aws: Pick<Provisioner, 'publish'> },
  spec: ConnectionSpec,
  isLost: boolean,
  signal?: AbortSignal,
): Promise<void> {
  const topicArn = ownTopicOf(spec);
  if (topicArn === undefined) return;
  const ref = refs.probe(topicArn);
  const sentAtMs = clock.nowMs();
  // every visit comes here, and many buckets share the topic
  if (!isProbeDue(await readRecord(state, ref, signal), isLost, sentAtMs)) return;
  await updateRecord(state, ref, () => ({ topicArn, sentAtMs, hasArrived: false, isLost }));
  try {
    await aws.publish(topicArn, probeText({ topicArn, sentAtMs }), signal);
  } catch (error) {
    // the failure says nothing about the path
    await removeRecord(state, ref.id);
    throw error;
  }
}
