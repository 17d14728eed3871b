/** Reads and writes the policies of queues. */
import { defined } from '../../../domain/defined.ts';
import { GetQueueAttributesCommand, GetQueueUrlCommand, SetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { z } from 'zod';
import { FaultError } from '../../../domain/fault.ts';
import { jsonOf } from '../../../domain/provisioning/facts.ts';
import { parseArn } from '../../../domain/provisioning/names.ts';
import type { ObservedQueue } from '../../../domain/provisioning/observed.ts';
import { queueMissing } from '../../../domain/provisioning/queue-missing.ts';
import type { Provisioner } from '../../../pipeline/ports/provision.ts';
import { regionInQueueUrl } from '../queue-address.ts';
import { asking, isMissing, optionsOf } from './refusals.ts';

interface Dependencies {
  readonly clientFor: (queueUrl: string) => SQSClient;
  /** Sends each request once. */
  readonly writerFor: (queueUrl: string) => SQSClient;
  /** The URL of the bucket queue: other queues are looked for where it is. */
  readonly queueUrl: string | undefined;
}

const countSchema = z.coerce.number().int().min(0).optional().catch(undefined);
const numbersSchema = z.object({ MessageRetentionPeriod: countSchema, DelaySeconds: countSchema, MaximumMessageSize: countSchema });

const redriveSchema = z.object({ deadLetterTargetArn: z.string(), maxReceiveCount: z.coerce.number() });

/** Creates the functions. */
export function createSqsProvision({
  clientFor,
  writerFor,
  queueUrl: bucketQueueUrl,
}: Dependencies): Pick<Provisioner, 'queueAt' | 'queueOf' | 'setQueuePolicy'> {
  /** The URLs of queues by their ARNs. There are as many as queues in the settings, and their dead-letter queues. */
  const urls = new Map<string, string>();

  async function urlOf(queueArn: string, signal?: AbortSignal): Promise<string> {
    const known = urls.get(queueArn);
    if (known !== undefined) return known;
    const arn = parseArn(queueArn);
    if (arn === undefined || bucketQueueUrl === undefined)
      throw new FaultError('connect.unavailable', `${queueArn} is not the ARN of a queue`);
    // the URL of the bucket queue is known: the daemon need not be permitted to look for it
    const isBucketQueue = bucketQueueUrl.endsWith(`/${arn.account}/${arn.resource}`);
    if (isBucketQueue && (regionInQueueUrl(bucketQueueUrl) ?? arn.region) === arn.region) return bucketQueueUrl;
    const command = new GetQueueUrlCommand({ QueueName: arn.resource, QueueOwnerAWSAccountId: arn.account });
    const send = () => clientFor(bucketQueueUrl).send(command, optionsOf(signal));
    const { QueueUrl } = await asking(`GetQueueUrl ${queueArn}`, 'sqs:GetQueueUrl', send, signal);
    if (QueueUrl === undefined) throw new FaultError('connect.unavailable', `GetQueueUrl ${queueArn}: the answer has no URL`);
    urls.set(queueArn, QueueUrl);
    return QueueUrl;
  }

  /** The error of a queue that does not exist is AWS's. */
  async function readQueue(queueUrl: string, signal?: AbortSignal): ReturnType<Provisioner['queueAt']> {
    const command = new GetQueueAttributesCommand({
      QueueUrl: queueUrl,
      AttributeNames: [
        'QueueArn',
        'Policy',
        'RedrivePolicy',
        'KmsMasterKeyId',
        'MessageRetentionPeriod',
        'DelaySeconds',
        'MaximumMessageSize',
        ...(queueUrl.endsWith('.fifo') ? (['FifoQueue'] as const) : []),
      ],
    });
    const send = () => clientFor(queueUrl).send(command, optionsOf(signal));
    const { Attributes = {} } = await asking(`GetQueueAttributes ${queueUrl}`, 'sqs:GetQueueAttributes', send, signal);
    const { QueueArn, Policy, RedrivePolicy, KmsMasterKeyId } = Attributes;
    if (QueueArn === undefined) throw new FaultError('connect.unavailable', `GetQueueAttributes ${queueUrl}: the answer has no QueueArn`);
    const redrive = redriveSchema.safeParse(jsonOf(RedrivePolicy ?? ''));
    urls.set(QueueArn, queueUrl);
    return {
      arn: QueueArn,
      isFifo: queueUrl.endsWith('.fifo'),
      ...(Policy !== undefined && { policy: Policy }),
      ...(KmsMasterKeyId !== undefined && KmsMasterKeyId !== '' && { kmsKeyId: KmsMasterKeyId }),
      ...(redrive.success && { maxReceiveCount: redrive.data.maxReceiveCount, deadLetterArn: redrive.data.deadLetterTargetArn }),
      ...numbersOf(Attributes),
    };
  }

  return {
    queueAt: (queueUrl, signal) => found(`GetQueueAttributes ${queueUrl}`, queueUrl, readQueue(queueUrl, signal)),
    async queueOf(queueArn, signal) {
      try {
        return await readQueue(await urlOf(queueArn, signal), signal);
      } catch (error) {
        if (!isMissing(error)) throw error;
        // a queue that is made again may have another URL
        urls.delete(queueArn);
        return 'absent';
      }
    },
    async setQueuePolicy(queueArn, policy, signal) {
      const what = `SetQueueAttributes ${queueArn}`;
      const queueUrl = await found(what, queueArn, urlOf(queueArn, signal));
      const command = new SetQueueAttributesCommand({ QueueUrl: queueUrl, Attributes: { Policy: policy } });
      await found(
        what,
        queueUrl,
        asking(what, 'sqs:SetQueueAttributes', () => writerFor(queueUrl).send(command, optionsOf(signal)), signal),
      );
    },
  };
}

/** How a queue keeps and delivers its messages, as far as the server says it in numbers. */
function numbersOf(attributes: object): Pick<ObservedQueue, 'retentionS' | 'delayS' | 'messageBytesMax'> {
  const { MessageRetentionPeriod: retentionS, DelaySeconds: delayS, MaximumMessageSize: messageBytesMax } = numbersSchema.parse(attributes);
  return {
    ...defined({ retentionS, delayS, messageBytesMax }),
  };
}

/** A queue of the settings, by its URL or ARN, that does not exist is an error. */
async function found<Answer>(what: string, queue: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw isMissing(error) ? queueMissing(what, placeOf(queue)) : error;
  }
}

function placeOf(queue: string): Parameters<typeof queueMissing>[1] {
  const arn = parseArn(queue);
  return arn === undefined
    ? { name: queue.split('/').at(-1) ?? '', region: regionInQueueUrl(queue) }
    : { name: arn.resource, region: arn.region };
}
