/** Reads queues and sets their attributes. */
import {
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueueTagsCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { FaultError } from '../../base/fault.ts';
import { parseArn, type Arn, type Tags } from '../names.rules.ts';
import type { Attributes, ObservedQueue } from '../plan.rules.ts';
import { queueMissing } from '../shared.rules.ts';
import { regionInQueueUrl } from '../../aws/queue-address.ts';
import { ask, isMissing, orAbsent, type At, type ClientsFor } from './refusals.ts';

/** How a queue is reached. */
export interface QueuePlace {
  /** Absent: SQS of the region. */
  readonly url?: string;
  /** For a URL whose host contains none. */
  readonly region?: string | undefined;
}

type KnownQueue = QueuePlace & { readonly url: string };

interface Dependencies extends ClientsFor<SQSClient, QueuePlace> {
  /** The URL of the bucket queue: other queues are looked for where it is. */
  readonly queueUrl: string | undefined;
  /** The region of queues whose URLs contain none. */
  readonly region: string;
}

export function createSqsProvision({ clientFor, writerFor, queueUrl: bucketQueueUrl, region: defaultRegion }: Dependencies) {
  /** The URLs of queues by their ARNs. There are as many as queues in the settings, and their dead-letter queues. */
  const urls = new Map<string, string>();
  const regionOf = (queueUrl: string): string => regionInQueueUrl(queueUrl) ?? defaultRegion;

  /** SQS itself where a queue is, for requests that take no URL of one. */
  function serviceAt({ region }: At): QueuePlace {
    const isNear = bucketQueueUrl !== undefined && regionOf(bucketQueueUrl) === region;
    return { ...(isNear && { url: bucketQueueUrl }), region };
  }

  async function reach(queueArn: string, signal?: AbortSignal): Promise<KnownQueue> {
    return { url: await urlOf(queueArn, signal), region: parseArn(queueArn)?.region };
  }

  async function urlOf(queueArn: string, signal?: AbortSignal): Promise<string> {
    const known = urls.get(queueArn);
    if (known !== undefined) return known;
    const arn = queueIn(queueArn);
    // the URL of the bucket queue is known: the daemon need not be permitted to look for it
    const isBucketQueue = bucketQueueUrl?.endsWith(`/${arn.account}/${arn.resource}`) === true && regionOf(bucketQueueUrl) === arn.region;
    if (isBucketQueue) return bucketQueueUrl;
    const command = new GetQueueUrlCommand({ QueueName: arn.resource, QueueOwnerAWSAccountId: arn.account });
    const client = clientFor(serviceAt(arn));
    const { QueueUrl } = await ask('sqs:GetQueueUrl', queueArn, (options) => client.send(command, options), signal);
    if (QueueUrl === undefined) throw new FaultError('connect.unavailable', `GetQueueUrl ${queueArn}: the answer has no URL`);
    urls.set(queueArn, QueueUrl);
    return QueueUrl;
  }

  /** The error of a queue that does not exist is AWS's. */
  async function readQueue(queue: KnownQueue, signal?: AbortSignal): Promise<ObservedQueue> {
    const { url } = queue;
    const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] });
    const { Attributes: attributes = {} } = await ask(
      'sqs:GetQueueAttributes',
      url,
      (options) => clientFor(queue).send(command, options),
      signal,
    );
    const { QueueArn: arn } = attributes;
    if (arn === undefined) throw new FaultError('connect.unavailable', `GetQueueAttributes ${url}: the answer has no QueueArn`);
    urls.set(arn, url);
    return { arn, url, attributes };
  }

  return {
    /** The queue with this URL. */
    queueAt: (queueUrl: string, signal?: AbortSignal) =>
      found(`GetQueueAttributes ${queueUrl}`, queueUrl, readQueue({ url: queueUrl }, signal)),
    /** The tags of the queue with this URL. */
    async queueTags(queueUrl: string, signal?: AbortSignal): Promise<Tags> {
      const command = new ListQueueTagsCommand({ QueueUrl: queueUrl });
      const client = clientFor({ url: queueUrl });
      const asked = ask('sqs:ListQueueTags', queueUrl, (options) => client.send(command, options), signal);
      return (await found(`ListQueueTags ${queueUrl}`, queueUrl, asked)).Tags ?? {};
    },
    /** The queue with this ARN, in this account or another. */
    async queueOf(queueArn: string, signal?: AbortSignal): Promise<ObservedQueue | 'absent'> {
      const observed = await orAbsent(reach(queueArn, signal).then((queue) => readQueue(queue, signal)));
      // a queue that is made again may have another URL
      if (observed === 'absent') urls.delete(queueArn);
      return observed;
    },
    /** An empty policy removes it. */
    async setQueue(queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      const what = `SetQueueAttributes ${queueArn}`;
      const queue = await found(what, queueArn, reach(queueArn, signal));
      const command = new SetQueueAttributesCommand({ QueueUrl: queue.url, Attributes: attributes });
      const sent = ask('sqs:SetQueueAttributes', queueArn, (options) => writerFor(queue).send(command, options), signal);
      await found(what, queue.url, sent);
    },
  };
}

function queueIn(queueArn: string): Arn {
  const arn = parseArn(queueArn);
  if (arn === undefined) throw new FaultError('connect.unavailable', `${queueArn} is not the ARN of a queue`);
  return arn;
}

/** A queue of the settings, by its URL or ARN, that does not exist is an error. */
async function found<Answer>(what: string, queue: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw isMissing(error) ? queueMissing(what, parseArn(queue)?.region ?? regionInQueueUrl(queue)) : error;
  }
}
