/** SQS requests about held messages, dead letters and the queue itself, and SNS's about its subscriptions. */
import {
  type MessageAttributeValue,
  type ServiceInputTypes,
  type ServiceOutputTypes,
  type SQSClient,
  type SQSClientResolvedConfig,
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
} from '@aws-sdk/client-sqs';
import type { Command } from '@smithy/core/client';
import { z } from 'zod';
import { jsonOf } from '../base/json.ts';
import type { Clock } from '../process/clock.ts';
import type { BatchFailure, MessageAttribute, QueueAttributes, QueueClient, ConfirmSubscription } from './queues.ts';
import { urlBeside } from './addresses.rules.ts';
import { isDenied, isMissing, errorText } from './faults.ts';
import { messageOf, SYSTEM_ATTRIBUTES, queueFault } from './sqs-receiver.ts';
import { type SNSClient, ConfirmSubscriptionCommand } from '@aws-sdk/client-sns';
import { FaultError } from '../base/fault.ts';

interface SqsClientDependencies {
  readonly clientFor: (queueUrl: string) => SQSClient;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

export function createSqsClient({ clientFor, clock }: SqsClientDependencies): QueueClient {
  const urlsByArn = new Map<string, string>();

  /** Sends one request. Throws the queue's fault if it fails, or the signal's reason if it is aborted. */
  async function ask<Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
    queueUrl: string,
    command: Command<Input, Output, SQSClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes>,
    signal: AbortSignal | undefined,
  ): Promise<Output> {
    try {
      return await clientFor(queueUrl).send(command, signal && { abortSignal: signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw queueFault(command.constructor.name.replace(/Command$/, ''), queueUrl, error);
    }
  }

  /** The URL of the redrive target, which is always in the queue's own region. Undefined if permission to read it is missing, or if the target does not exist. */
  async function urlOfArn(arn: string, queueUrl: string, signal: AbortSignal | undefined): Promise<string | undefined> {
    const [, , , , account, name] = arn.split(':');
    const known = urlsByArn.get(arn);
    if (known !== undefined || name === undefined) return known;
    try {
      const input = { QueueName: name, QueueOwnerAWSAccountId: account };
      const { QueueUrl } = await clientFor(queueUrl).send(new GetQueueUrlCommand(input), { ...(signal && { abortSignal: signal }) });
      if (QueueUrl === undefined) return undefined;
      const url = urlBeside(QueueUrl, queueUrl);
      urlsByArn.set(arn, url);
      return url;
    } catch (error) {
      signal?.throwIfAborted();
      if (isDenied(error) || isMissing(error)) return undefined;
      throw queueFault('GetQueueUrl for the redrive target of', queueUrl, error);
    }
  }

  return {
    async deleteBatch(queueUrl, receiptHandles, signal) {
      const Entries = receiptHandles.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }));
      const command = new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries });
      const { Failed } = await ask(queueUrl, command, signal);
      return failuresOf(Failed, receiptHandles);
    },
    async changeVisibilityBatch(queueUrl, entries, signal) {
      const handles = entries.map(({ receiptHandle }) => receiptHandle);
      const Entries = entries.map(({ timeoutS }, at) => ({ Id: String(at), ReceiptHandle: handles[at], VisibilityTimeout: timeoutS }));
      const command = new ChangeMessageVisibilityBatchCommand({ QueueUrl: queueUrl, Entries });
      const { Failed } = await ask(queueUrl, command, signal);
      return failuresOf(Failed, handles);
    },
    async send(queueUrl, { body, attributes, delayS }, signal) {
      const MessageAttributes = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, attributeToSend(value)]));
      const command = new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: body, MessageAttributes, DelaySeconds: delayS });
      const sent = sentSchema.safeParse(await ask(queueUrl, command, signal));
      if (!sent.success) throw queueFault('SendMessage', queueUrl, sent.error);
      return sent.data.MessageId;
    },
    async receive(queueUrl, { visibilityS, max }, signal) {
      const command = new ReceiveMessageCommand({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: max,
        VisibilityTimeout: visibilityS,
        WaitTimeSeconds: 0,
        MessageSystemAttributeNames: [...SYSTEM_ATTRIBUTES],
        MessageAttributeNames: ['All'],
      });
      const { Messages } = await ask(queueUrl, command, signal);
      const receivedAtMonotonicMs = clock.monotonicMs();
      return (Messages ?? []).map((message) => messageOf(message, { queueUrl, receivedAtMonotonicMs }));
    },
    async attributes(queueUrl, signal) {
      const command = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: [...QUEUE_ATTRIBUTES] });
      const { Attributes } = await ask(queueUrl, command, signal);
      const { redrive, ...read } = parseAttributes(queueUrl, Attributes);
      // of the time that SQS has just answered: the SDK signs by it
      const counts = { ...read, sqsAheadMs: clientFor(queueUrl).config.systemClockOffset };
      if (redrive === undefined) return counts;
      const deadLetterQueueUrl = await urlOfArn(redrive.deadLetterTargetArn, queueUrl, signal);
      return { ...counts, maxReceiveCount: redrive.maxReceiveCount, ...(deadLetterQueueUrl !== undefined && { deadLetterQueueUrl }) };
    },
  };
}

/** An answer without a message ID does not come from SQS: the message was not sent. */
const sentSchema = z.object({ MessageId: z.string() });

const QUEUE_ATTRIBUTES = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
  'VisibilityTimeout',
  'MessageRetentionPeriod',
  'MaximumMessageSize',
  'RedrivePolicy',
] as const;

/** SQS accepts and returns maxReceiveCount as a number or as a string. */
const redriveSchema = z.object({ deadLetterTargetArn: z.string(), maxReceiveCount: z.coerce.number().int().positive() });
const countSchema = z.coerce.number().int().nonnegative();
const attributesSchema = z.object({
  ApproximateNumberOfMessages: countSchema,
  ApproximateNumberOfMessagesNotVisible: countSchema,
  ApproximateNumberOfMessagesDelayed: countSchema,
  VisibilityTimeout: countSchema,
  MessageRetentionPeriod: countSchema.optional(),
  MaximumMessageSize: countSchema.optional(),
  RedrivePolicy: z
    .string()
    .transform((text, context) => {
      const parsed = redriveSchema.safeParse(jsonOf(text));
      if (parsed.success) return parsed.data;
      context.addIssue('must be a redrive policy');
      return z.NEVER;
    })
    .optional(),
});

function parseAttributes(
  queueUrl: string,
  attributes: unknown,
): QueueAttributes & { readonly redrive: z.infer<typeof redriveSchema> | undefined } {
  const parsed = attributesSchema.safeParse(attributes);
  if (!parsed.success) throw queueFault('GetQueueAttributes', queueUrl, parsed.error);
  const { MessageRetentionPeriod: retentionS, MaximumMessageSize: messageBytesMax } = parsed.data;
  return {
    visible: parsed.data.ApproximateNumberOfMessages,
    inFlight: parsed.data.ApproximateNumberOfMessagesNotVisible,
    delayed: parsed.data.ApproximateNumberOfMessagesDelayed,
    visibilityTimeoutS: parsed.data.VisibilityTimeout,
    ...(retentionS !== undefined && { retentionMs: retentionS * 1_000 }),
    ...(messageBytesMax !== undefined && { messageBytesMax }),
    redrive: parsed.data.RedrivePolicy,
  };
}

/** The codes for a receipt handle that is expired, of another queue or malformed. Not every emulator marks them as the sender's fault. */
const HOPELESS = new Set(['ReceiptHandleIsInvalid', 'InvalidParameterValue', 'MessageNotInflight']);

function failuresOf(
  failed: readonly { readonly Id: string | undefined; readonly Code: string | undefined; readonly SenderFault: boolean | undefined }[] = [],
  receiptHandles: readonly string[],
): readonly BatchFailure[] {
  return failed.flatMap(({ Id, Code, SenderFault }) => {
    const receiptHandle = receiptHandles[Number(Id)];
    return receiptHandle === undefined
      ? []
      : [{ receiptHandle, code: Code ?? 'Unknown', senderFault: SenderFault === true || HOPELESS.has(Code ?? '') }];
  });
}

function attributeToSend({ dataType, stringValue, binaryValue }: MessageAttribute): MessageAttributeValue {
  return {
    DataType: dataType,
    ...(stringValue !== undefined && { StringValue: stringValue }),
    ...(binaryValue !== undefined && { BinaryValue: binaryValue }),
  };
}

const TOPIC_ARN = /^arn:aws[a-z-]*:sns:([a-z]{2,5}(?:-[a-z]+)+-\d+):(\d{12}):[A-Za-z0-9_.-]{1,256}$/;

/** Confirms the bucket queue's subscription to a topic. Never fetches a URL from a message. */
export async function confirmSubscription(
  clientFor: (region: string) => SNSClient,
  ...[topicArn, token, signal]: Parameters<ConfirmSubscription>
): Promise<void> {
  const region = TOPIC_ARN.exec(topicArn)?.[1];
  if (region === undefined) throw new FaultError('message.confirmation-failed', `${topicArn} is not the ARN of an SNS topic`);
  try {
    const command = new ConfirmSubscriptionCommand({ TopicArn: topicArn, Token: token });
    const { SubscriptionArn } = await clientFor(region).send(command, { ...(signal && { abortSignal: signal }) });
    if (SubscriptionArn === undefined) throw new Error('the answer names no subscription');
  } catch (error) {
    signal?.throwIfAborted();
    throw new FaultError('message.confirmation-failed', `ConfirmSubscription ${topicArn}: ${errorText(error)}`, { cause: error });
  }
}
