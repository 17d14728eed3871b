/** Reads and makes queues. */
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueueTagsCommand,
  SetQueueAttributesCommand,
  TagQueueCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { FaultError } from '../../base/fault.ts';
import { arnOf, parseArn, type Tags } from '../names.rules.ts';
import type { Attributes, ObservedQueue } from '../plan.rules.ts';
import { queueMissing } from '../shared.rules.ts';
import { regionInQueueUrl } from '../../aws/queue-url.rules.ts';
import { isMissing } from '../../aws/refusals.ts';
import { ask, orAbsent, type At, type ClientsFor } from './ask.ts';

/** How a queue is reached. */
export interface QueuePlace {
  /** If absent, the request goes to the region's SQS. */
  readonly url?: string;
  /** For a URL whose host contains none. */
  readonly region?: string | undefined;
}

type KnownQueue = QueuePlace & { readonly url: string };

interface Dependencies extends ClientsFor<SQSClient, QueuePlace> {
  /** The bucket queue's URL. Tally looks up its region's other queues at the same address. */
  readonly queueUrl: string | undefined;
  /** The region of queues whose URLs contain none. */
  readonly region: string;
}

export function createSqsProvision({ clientFor, writerFor, queueUrl: bucketQueueUrl, region: defaultRegion }: Dependencies) {
  /** Queues' URLs by ARN: the settings' queues and their dead-letter queues. */
  const urls = new Map<string, string>();
  const regionOf = (queueUrl: string): string => regionInQueueUrl(queueUrl) ?? defaultRegion;

  /** The region's SQS, for requests that take no queue's URL. */
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
    const arn = arnOf(queueArn);
    // known, so that the daemon needs no permission to look it up
    const isBucketQueue = bucketQueueUrl?.endsWith(`/${arn.account}/${arn.resource}`) === true && regionOf(bucketQueueUrl) === arn.region;
    if (isBucketQueue) return bucketQueueUrl;
    const command = new GetQueueUrlCommand({ QueueName: arn.resource, QueueOwnerAWSAccountId: arn.account });
    const { QueueUrl } = await ask(clientFor(serviceAt(arn)), command, queueArn, signal);
    if (QueueUrl === undefined) throw new FaultError('connect.unavailable', `GetQueueUrl ${queueArn}: the answer has no URL`);
    urls.set(queueArn, QueueUrl);
    return QueueUrl;
  }

  /** If the queue does not exist, AWS's own error is thrown. */
  async function readQueue(queue: KnownQueue, signal?: AbortSignal): Promise<ObservedQueue> {
    const { url } = queue;
    const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] });
    const { Attributes: attributes = {} } = await ask(clientFor(queue), command, url, signal);
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
      const asked = ask(clientFor({ url: queueUrl }), new ListQueueTagsCommand({ QueueUrl: queueUrl }), queueUrl, signal);
      return (await found(`ListQueueTags ${queueUrl}`, queueUrl, asked)).Tags ?? {};
    },
    /** The queue with this ARN, in this account or another. */
    async queueOf(queueArn: string, signal?: AbortSignal): Promise<ObservedQueue | 'absent'> {
      const observed = await orAbsent(reach(queueArn, signal).then((queue) => readQueue(queue, signal)));
      // a recreated queue may have another URL
      if (observed === 'absent') urls.delete(queueArn);
      return observed;
    },
    /** SQS refuses it if a queue with this name exists and has other attributes. */
    async createQueue(queueArn: string, attributes: Attributes, tags: Tags, signal?: AbortSignal): Promise<void> {
      const { region, resource } = arnOf(queueArn);
      const command = new CreateQueueCommand({ QueueName: resource, Attributes: attributes, tags });
      await ask(writerFor({ region }), command, resource, signal);
    },
    /** An empty policy removes it. */
    async setQueue(queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      const what = `SetQueueAttributes ${queueArn}`;
      const queue = await found(what, queueArn, reach(queueArn, signal));
      const command = new SetQueueAttributesCommand({ QueueUrl: queue.url, Attributes: attributes });
      await found(what, queue.url, ask(writerFor(queue), command, queueArn, signal));
    },
    async tagQueue(queueArn: string, tags: Tags, signal?: AbortSignal): Promise<void> {
      const queue = await reach(queueArn, signal);
      await ask(writerFor(queue), new TagQueueCommand({ QueueUrl: queue.url, Tags: tags }), queue.url, signal);
    },
  };
}

/** Throws `connect.queue-missing` if the queue, by its URL or ARN, does not exist. */
async function found<Answer>(what: string, queue: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw isMissing(error) ? queueMissing(what, parseArn(queue)?.region ?? regionInQueueUrl(queue)) : error;
  }
}
