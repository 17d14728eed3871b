/** Confirms the bucket queue's subscription to a topic. Never fetches a URL from a message. */
import { type SNSClient, ConfirmSubscriptionCommand } from '@aws-sdk/client-sns';
import { FaultError } from '../base/fault.ts';
import type { ConfirmSubscription } from './queues.ts';
import { errorText } from './faults.ts';

const TOPIC_ARN = /^arn:aws[a-z-]*:sns:([a-z]{2,5}(?:-[a-z]+)+-\d+):(\d{12}):[A-Za-z0-9_.-]{1,256}$/;

export async function confirmSubscription(
  clientFor: (region: string) => SNSClient,
  ...[topicArn, token, signal]: Parameters<ConfirmSubscription>
): Promise<void> {
  const region = TOPIC_ARN.exec(topicArn)?.[1];
  if (region === undefined) throw new FaultError('message.confirmation-failed', `${topicArn} is not the ARN of an SNS topic`);
  try {
    const command = new ConfirmSubscriptionCommand({ TopicArn: topicArn, Token: token });
    await clientFor(region).send(command, { ...(signal && { abortSignal: signal }) });
  } catch (error) {
    signal?.throwIfAborted();
    throw new FaultError('message.confirmation-failed', `ConfirmSubscription ${topicArn}: ${errorText(error)}`, { cause: error });
  }
}
