/** Confirms the subscription of the bucket queue to a topic, and checks whether a topic exists. A URL in a message is never fetched. */
import { type SNSClient, ConfirmSubscriptionCommand, GetTopicAttributesCommand } from '@aws-sdk/client-sns';
import { FaultError } from '../../domain/fault.ts';
import type { TopicClient } from '../../pipeline/ports/queues.ts';
import { errorText } from './clients.ts';

const TOPIC_ARN = /^arn:aws[a-z-]*:sns:([a-z]{2,5}(?:-[a-z]+)+-\d+):(\d{12}):[A-Za-z0-9_.-]{1,256}$/;

/** The error names with which SNS reports that a topic does not exist. */
const MISSING = new Set(['NotFound', 'NotFoundException']);
/** A person waits for the answer, and can do without it. */
const ASK_TIMEOUT_MS = 5_000;

export function createSnsTopics({ clientFor }: { readonly clientFor: (region: string) => SNSClient }): TopicClient {
  return {
    async confirm(topicArn, token, signal) {
      const region = TOPIC_ARN.exec(topicArn)?.[1];
      if (region === undefined) throw new FaultError('message.confirmation-failed', `${topicArn} is not the ARN of an SNS topic`);
      try {
        const command = new ConfirmSubscriptionCommand({ TopicArn: topicArn, Token: token });
        await clientFor(region).send(command, { ...(signal && { abortSignal: signal }) });
      } catch (error) {
        signal?.throwIfAborted();
        throw new FaultError('message.confirmation-failed', `ConfirmSubscription ${topicArn}: ${errorText(error)}`, { cause: error });
      }
    },
    async isMissing(topicArn, signal) {
      const region = TOPIC_ARN.exec(topicArn)?.[1];
      if (region === undefined) return false;
      const limit = AbortSignal.any([AbortSignal.timeout(ASK_TIMEOUT_MS), ...(signal === undefined ? [] : [signal])]);
      try {
        await clientFor(region).send(new GetTopicAttributesCommand({ TopicArn: topicArn }), { abortSignal: limit });
        return false;
      } catch (error) {
        signal?.throwIfAborted();
        return error instanceof Error && MISSING.has(error.name);
      }
    },
  };
}
