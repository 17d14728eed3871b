/** Messages about the wiring rather than about objects: S3's test event, SNS's confirmations. */
import type { BucketRecord } from '../domain/bucket.ts';
import { bucketRecordSchema } from '../domain/bucket.ts';
import type { Unwrapped } from '../domain/envelope.ts';
import type { Outcome } from '../domain/outcome.ts';
import { printable } from '../domain/printable.ts';
import { faultOf } from '../domain/fault.ts';
import type { GapReports } from './gap-records.ts';
import type { Clock, StateStore, Telemetry, TopicClient } from './ports.ts';
import { listAllRecords } from './state-records.ts';

export type ServiceMessage = Exclude<Unwrapped, { readonly kind: 'records' | 'rejected' }>;

export type FinishServiceMessage = (message: ServiceMessage) => Promise<Outcome>;

interface ServiceDependencies {
  readonly state: StateStore;
  readonly topics: TopicClient;
  readonly gaps: GapReports;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Creates the step. No URL of a message is ever fetched: a subscription is confirmed through the SNS API, and only of a topic that a connected bucket names. */
export function createFinishServiceMessage({ state, topics, gaps, clock, telemetry }: ServiceDependencies): FinishServiceMessage {
  return async function finishServiceMessage(message) {
    telemetry.serviceMessage(message.kind);
    try {
      switch (message.kind) {
        case 'test-event':
          return { kind: 'ignored', reason: 'no-effect' };
        case 'subscription-confirmation':
          return await confirm(message.topicArn, message.token);
        case 'unsubscribe-confirmation':
          return await unsubscribed(message.topicArn);
      }
    } catch (error) {
      return { kind: 'deferred', fault: faultOf(error) };
    }
  };

  async function confirm(topicArn: string, token: string): Promise<Outcome> {
    if ((await bucketsOf(topicArn)).length === 0) {
      const reason = `a subscription to ${printable(topicArn, 300)} asks to be confirmed, but no connected bucket names that topic`;
      return { kind: 'rejected', fault: { code: 'message.unknown-topic', reason } };
    }
    await topics.confirm(topicArn, token);
    telemetry.info('subscription confirmed', { topicArn });
    return { kind: 'ignored', reason: 'no-effect' };
  }

  async function unsubscribed(topicArn: string): Promise<Outcome> {
    telemetry.warn('the bucket queue was unsubscribed from a topic: its events no longer arrive', { topicArn });
    for (const { bucket } of await bucketsOf(topicArn)) {
      await gaps.report({ bucket, kind: 'loss', reason: 'unsubscribed from its topic', seenAtMs: clock.nowMs() });
    }
    return { kind: 'gap' };
  }

  async function bucketsOf(topicArn: string): Promise<readonly BucketRecord[]> {
    const all = await listAllRecords(state, 'bucket', bucketRecordSchema);
    return all.filter((bucket) => bucket.topicArn === topicArn);
  }
}
