/** Messages about a queue's wiring instead of objects: S3's test event, SNS's confirmations, and Tally's own probes. */
import { type BucketRecord, bucketRecordSchema, mayBeFedBy } from '../records/bucket.ts';
import type { Unwrapped } from '../events/envelope.ts';
import { deferDelayS, type Outcome } from '../events/outcome.ts';
import { printable } from '../base/texts.ts';
import { circuitOf, faultOf, type Fault } from '../base/fault.ts';
import { isByWay } from '../events/proof.ts';
import { forgetProof, noteArrivals, markDirty, type GapReports } from '../observing/gaps.ts';
import type { InHand } from './held-set.ts';
import type { ConfirmSubscription } from '../aws/queues.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../store/stored.ts';
import type { Waiting } from './waiting.ts';
import type { WithPorts } from '../store/store.ts';

export type ServiceMessage = Exclude<Unwrapped, { readonly kind: 'records' | 'rejected' }>;

type TestEvent = ServiceMessage & { readonly kind: 'test-event' };

/** How long after a subscription has ended deliveries that began before it, and their retries, may still arrive. */
const LATE_MS = 60_000;

interface ServiceParts extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly confirmSubscription: ConfirmSubscription;
  readonly gaps: GapReports;
  readonly waiting: Pick<Waiting, 'afterStoreFault'>;
}

/**
 * Handles a message about the wiring and returns its outcome. It never fetches a URL from a message: it confirms subscriptions through
 * the SNS API, and only to topics that a connected bucket names. Rejects only with the reason of the stop.
 */
export async function finishServiceMessage(parts: ServiceParts, message: ServiceMessage, hand: InHand): Promise<Outcome> {
  const { telemetry } = parts;
  telemetry.count('tally_service_messages_total', 1, { kind: message.kind });
  telemetry.info('service message received', { kind: message.kind });
  for (;;) {
    const outcome = await finish(parts, message, hand).catch((error: unknown) => afterFault(parts, faultOf(error), hand));
    if (outcome !== undefined) return outcome;
  }
}

/** Returns undefined if the message may be tried again. */
async function afterFault({ waiting }: ServiceParts, fault: Fault, hand: InHand): Promise<Outcome | undefined> {
  hand.signal.throwIfAborted();
  if (circuitOf(fault.code) === 'never') return { kind: 'rejected', fault };
  if (await waiting.afterStoreFault(fault, hand)) return undefined;
  return { kind: 'deferred', fault, delayS: deferDelayS(hand.message.receiveCount) };
}

async function finish(parts: ServiceParts, message: ServiceMessage, hand: InHand): Promise<Outcome> {
  if (message.kind === 'test-event') return handleTestEvent(parts, message, hand);
  hand.turnSlow();
  if (message.kind === 'probe') return handleProbe(parts, message);
  if (message.kind === 'subscription-confirmation') return handleConfirmation(parts, message.topicArn, message.token);
  return handleUnsubscribe(parts, message.topicArn, hand.message);
}

/** The test event shows that the bucket's notification reaches the queue. It proves nothing about another source, or about a later connection. */
async function handleTestEvent(
  { state, clock }: ServiceParts,
  { bucket, topicArn }: TestEvent,
  { message, signal }: InHand,
): Promise<Outcome> {
  const record = bucket === undefined ? undefined : await readRecord(state, refs.bucket(bucket), signal);
  const arrival = { dialect: 'native', family: 'other', topicArn, happenedMs: message.sentAtMs } as const;
  if (record !== undefined && isByWay(record, arrival)) await noteArrivals({ state, clock }, record, ['other']);
  return { kind: 'ignored', reason: 'no-effect' };
}

/** Notes that the topic's last probe has arrived. Earlier probes show nothing new. */
async function handleProbe({ state }: ServiceParts, { topicArn, sentAtMs }: ServiceMessage & { readonly kind: 'probe' }): Promise<Outcome> {
  await updateRecord(state, refs.probe(topicArn), (current) =>
    current?.sentAtMs === sentAtMs ? { ...current, hasArrived: true, isLost: false } : undefined,
  );
  return { kind: 'ignored', reason: 'no-effect' };
}

async function handleConfirmation(parts: ServiceParts, topicArn: string, token: string): Promise<Outcome> {
  if ((await bucketsOfTopic(parts, topicArn)).length === 0) {
    const reason = `a subscription to ${printable(topicArn, 300)} waits for its confirmation, but no connected bucket names that topic`;
    return { kind: 'rejected', fault: { code: 'message.unknown-topic', reason } };
  }
  await parts.confirmSubscription(topicArn, token);
  parts.telemetry.info('subscription confirmed', { topicArn });
  return { kind: 'ignored', reason: 'no-effect' };
}

/** Events of this topic's buckets no longer arrive, until a later one shows that they do again. Buckets whose topic is unknown may be affected too. */
async function handleUnsubscribe(
  { state, gaps, clock, telemetry }: ServiceParts,
  topicArn: string,
  { sentAtMs, queueUrl }: InHand['message'],
): Promise<Outcome> {
  telemetry.warn('the bucket queue was unsubscribed from a topic, so its events no longer arrive', { topicArn });
  const reason = "the bucket queue was unsubscribed from the bucket's topic";
  const seenAtMs = Math.max(clock.nowMs(), sentAtMs);
  for (const record of await listAllRecords(state, 'bucket', bucketRecordSchema)) {
    const { bucket, topicArn: own, waySinceMs = 0 } = record;
    // a repeated message says nothing new
    if (own === topicArn && sentAtMs >= waySinceMs) {
      await markDirty({ state, clock }, { bucket, kind: 'connection', reason, seenAtMs, unproven: 'events' });
      await forgetProof({ state, clock }, bucket, seenAtMs + LATE_MS);
    } else if (own === undefined && isFedBy(record, queueUrl, clock.nowMs())) {
      await gaps.report({ bucket, kind: 'loss', reason, seenAtMs });
    }
  }
  return { kind: 'gap' };
}

async function bucketsOfTopic({ state }: ServiceParts, topicArn: string): Promise<readonly BucketRecord[]> {
  const all = await listAllRecords(state, 'bucket', bucketRecordSchema);
  return all.filter((bucket) => bucket.topicArn === topicArn);
}

function isFedBy(bucket: BucketRecord, queueUrl: string, nowMs: number): boolean {
  const others = (bucket.eventQueues ?? []).map((queue) => queue.queueUrl).filter((url) => url !== queueUrl);
  return mayBeFedBy(bucket, { queueUrls: [queueUrl], others, nowMs });
}
