/** Messages about the wiring of a queue rather than about objects: S3's test event, SNS's confirmations, and Tally's own probes. */
import { type BucketRecord, bucketRecordSchema, mayBeFedBy } from '../../domain/bucket.ts';
import type { Unwrapped } from '../../domain/events/envelope.ts';
import { deferDelayS, type Outcome } from '../../domain/messages/outcome.ts';
import { printable } from '../../domain/printable.ts';
import { circuitOf, faultOf, type Fault } from '../../domain/fault.ts';
import { isByWay } from '../../domain/provisioning/proof.ts';
import { noteArrivals } from '../gaps/connection-gaps.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { InHand } from './held-set.ts';
import type { TopicClient } from '../ports/queues.ts';
import { connectionSchema, type ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { wiringOf, wishSchema } from '../../domain/provisioning/wiring.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../records/stored.ts';
import type { Waiting } from './waiting.ts';
import type { WithPorts } from '../ports/ports.ts';

export type ServiceMessage = Exclude<Unwrapped, { readonly kind: 'records' | 'rejected' }>;

type TestEvent = ServiceMessage & { readonly kind: 'test-event' };

/** Handles a message about the wiring and returns its outcome. Rejects only with the reason of the stop. */
export type FinishServiceMessage = (message: ServiceMessage, hand: InHand) => Promise<Outcome>;

interface ServiceDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly topics: TopicClient;
  readonly gaps: GapReports;
  readonly waiting: Pick<Waiting, 'afterStoreFault'>;
}

/** Creates the handler. It never fetches a URL of a message: it confirms a subscription by the SNS API, and only to a topic that a connected bucket names. */
export function createFinishServiceMessage({ state, topics, gaps, waiting, clock, telemetry }: ServiceDependencies): FinishServiceMessage {
  return async function finishServiceMessage(message, hand) {
    telemetry.count('tally_service_messages_total', 1, { kind: message.kind });
    telemetry.info('service message received', { kind: message.kind });
    for (;;) {
      const outcome = await finish(message, hand).catch((error: unknown) => afterFault(faultOf(error), hand));
      if (outcome !== undefined) return outcome;
    }
  };

  /** Undefined when the message may be tried again. */
  async function afterFault(fault: Fault, hand: InHand): Promise<Outcome | undefined> {
    hand.signal.throwIfAborted();
    if (circuitOf(fault.code) === 'never') return { kind: 'rejected', fault };
    if (await waiting.afterStoreFault(fault, hand)) return undefined;
    return { kind: 'deferred', fault, delayS: deferDelayS(hand.message.receiveCount) };
  }

  async function finish(message: ServiceMessage, hand: InHand): Promise<Outcome> {
    if (message.kind === 'test-event') return tested(message, hand);
    hand.turnSlow();
    if (message.kind === 'probe') return probed(message);
    if (message.kind === 'subscription-confirmation') return confirm(message.topicArn, message.token);
    return unsubscribed(message.topicArn, hand.message);
  }

  /** S3's notification of this bucket reaches the queue, which proves nothing of another source, or if it is from before the way of now. */
  async function tested({ bucket, topicArn }: TestEvent, { message, signal }: InHand): Promise<Outcome> {
    const record = bucket === undefined ? undefined : await readRecord(state, refs.bucket(bucket), signal);
    const arrival = { dialect: 'native', family: 'other', topicArn, happenedMs: message.sentAtMs } as const;
    if (record !== undefined && isByWay(record, arrival)) await noteArrivals({ state, clock }, record, ['other']);
    return { kind: 'ignored', reason: 'no-effect' };
  }

  /** What an earlier probe shows is known already. */
  async function probed({ topicArn, sentAtMs }: ServiceMessage & { readonly kind: 'probe' }): Promise<Outcome> {
    await updateRecord(state, refs.probe(topicArn), (current) =>
      current?.sentAtMs === sentAtMs ? { ...current, hasArrived: true, isLost: false } : undefined,
    );
    return { kind: 'ignored', reason: 'no-effect' };
  }

  async function confirm(topicArn: string, token: string): Promise<Outcome> {
    if ((await bucketsOf(topicArn)).length === 0) {
      const reason = `a subscription to ${printable(topicArn, 300)} waits for its confirmation, but no connected bucket names that topic`;
      return { kind: 'rejected', fault: { code: 'message.unknown-topic', reason } };
    }
    await topics.confirm(topicArn, token);
    telemetry.info('subscription confirmed', { topicArn });
    return { kind: 'ignored', reason: 'no-effect' };
  }

  /**
   * Opens a gap now of each bucket whose events may have come by the topic, and marks those that are known to: from here on their
   * events are missing, until one arrives that was sent later.
   */
  async function unsubscribed(topicArn: string, { sentAtMs, queueUrl }: InHand['message']): Promise<Outcome> {
    telemetry.warn('the bucket queue was unsubscribed from a topic, so its events no longer arrive', { topicArn });
    const reason = 'the bucket queue was unsubscribed from the topic of the bucket';
    const connections = await listAllRecords(state, 'connection', connectionSchema);
    const connectionOf = new Map(connections.map((connection) => [connection.bucket, connection]));
    for (const record of await listAllRecords(state, 'bucket', bucketRecordSchema)) {
      const { bucket, topicArn: ownTopic, unsubscribed: known } = record;
      const way = wayOf(record, connectionOf.get(bucket), topicArn);
      if (way === 'other' || (way === 'unknown' && !isFedBy(record, queueUrl, clock.nowMs()))) continue;
      // a repeated message adds no gap: the one at the end of this time covers all of it
      if (known === undefined) await gaps.report({ bucket, kind: 'loss', reason, seenAtMs: Math.max(clock.nowMs(), sentAtMs) });
      if (way === 'unknown') continue;
      await updateRecord(state, refs.bucket(bucket), (current) =>
        current?.topicArn === ownTopic && current !== undefined
          ? { ...current, unsubscribed: { topicArn, atMs: Math.max(sentAtMs, current.unsubscribed?.atMs ?? 0) } }
          : undefined,
      );
    }
    return { kind: 'gap' };
  }

  async function bucketsOf(topicArn: string): Promise<readonly BucketRecord[]> {
    const all = await listAllRecords(state, 'bucket', bucketRecordSchema);
    return all.filter((bucket) => bucket.topicArn === topicArn);
  }
}

/**
 * Whether the bucket's events come by the topic: it or its connection names the topic, or another way. How a bucket that was
 * wired by hand is wired is not known, unless it names its topic.
 */
function wayOf(
  { topicArn: named }: BucketRecord,
  connection: ConnectionRecord | undefined,
  topicArn: string,
): 'topic' | 'other' | 'unknown' {
  if (named === topicArn) return 'topic';
  if (connection === undefined) return named === undefined ? 'unknown' : 'other';
  const { earlier = [] } = connection;
  const arns = [wiringOf(wishSchema.parse(connection)).subscription?.topicArn, ...earlier.map((before) => before.topicArn)];
  return arns.includes(topicArn) ? 'topic' : 'other';
}

function isFedBy(bucket: BucketRecord, queueUrl: string, nowMs: number): boolean {
  const others = (bucket.eventQueues ?? []).map((queue) => queue.queueUrl).filter((url) => url !== queueUrl);
  return mayBeFedBy(bucket, { queueUrls: [queueUrl], others, nowMs });
}
