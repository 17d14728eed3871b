/** Reads queues, and sets their attributes. */
import { GetQueueAttributesCommand, GetQueueUrlCommand, ListQueueTagsCommand, SetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import type { AwsClients } from '../../aws/clients.ts';
import { FaultError } from '../../base/fault.ts';
import { arnOf, parseArn, type Tags } from '../names.rules.ts';
import type { Attributes, ObservedQueue } from '../plan.rules.ts';
import { queueMissing } from '../shared.rules.ts';
import { regionInQueueUrl, urlBeside } from '../../aws/queue-url.rules.ts';
import { isMissing } from '../../aws/refusals.ts';
import { ask, orAbsent, type ClientsOf } from './ask.ts';

/** How a queue is reached. */
interface KnownQueue {
  readonly url: string;
  /** For a URL whose host contains none. */
  readonly region?: string | undefined;
}

/** `bucketQueueUrl`: Tally looks up its region's other queues at the same address. */
export function createSqsProvision(aws: ClientsOf<'sqsFor' | 'sqsIn'> & Pick<AwsClients, 'region'>, bucketQueueUrl: string | undefined) {
  /** Queues' URLs by ARN: the settings' queues and their dead-letter queues. */
  const urls = new Map<string, string>();
  const regionOf = (queueUrl: string): string => regionInQueueUrl(queueUrl) ?? aws.region;

  async function reach(queueArn: string, signal?: AbortSignal): Promise<KnownQueue> {
    return { url: await urlOf(queueArn, signal), region: parseArn(queueArn)?.region };
  }

  async function urlOf(queueArn: string, signal?: AbortSignal): Promise<string> {
    const known = urls.get(queueArn);
    if (known !== undefined) return known;
    const arn = arnOf(queueArn);
    const near = bucketQueueUrl !== undefined && regionOf(bucketQueueUrl) === arn.region ? bucketQueueUrl : undefined;
    // known, so that the daemon needs no permission to look it up
    if (near?.endsWith(`/${arn.account}/${arn.resource}`) === true) return near;
    const command = new GetQueueUrlCommand({ QueueName: arn.resource, QueueOwnerAWSAccountId: arn.account });
    const client = near === undefined ? aws.sqsIn(arn.region) : aws.sqsFor(near, arn.region);
    const { QueueUrl } = await ask(client, command, queueArn, signal);
    if (QueueUrl === undefined) throw new FaultError('connect.unavailable', `GetQueueUrl ${queueArn}: the answer has no URL`);
    const url = near === undefined ? QueueUrl : urlBeside(QueueUrl, near);
    urls.set(queueArn, url);
    return url;
  }

  /** If the queue does not exist, AWS's own error is thrown. */
  async function readQueue({ url, region }: KnownQueue, signal?: AbortSignal): Promise<ObservedQueue> {
    const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] });
    const { Attributes: attributes = {} } = await ask(aws.sqsFor(url, region), command, url, signal);
    const { QueueArn: arn } = attributes;
    if (arn === undefined) throw new FaultError('connect.unavailable', `GetQueueAttributes ${url}: the answer has no QueueArn`);
    urls.set(arn, url);
    return { arn, url, attributes };
  }

  return {
    /** The queue with this URL. */
    queueAt: (queueUrl: string, signal?: AbortSignal) =>
      existingQueue(`GetQueueAttributes ${queueUrl}`, queueUrl, readQueue({ url: queueUrl }, signal)),
    /** The tags of the queue with this URL. */
    async queueTags(queueUrl: string, signal?: AbortSignal): Promise<Tags> {
      const asked = ask(aws.sqsFor(queueUrl), new ListQueueTagsCommand({ QueueUrl: queueUrl }), queueUrl, signal);
      return (await existingQueue(`ListQueueTags ${queueUrl}`, queueUrl, asked)).Tags ?? {};
    },
    /** The queue with this ARN, in this account or another. */
    async queueOf(queueArn: string, signal?: AbortSignal): Promise<ObservedQueue | 'absent'> {
      const observed = await orAbsent(reach(queueArn, signal).then((queue) => readQueue(queue, signal)));
      // a recreated queue may have another URL
      if (observed === 'absent') urls.delete(queueArn);
      return observed;
    },
    /** An empty policy removes it. */
    async setQueue(queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      const what = `SetQueueAttributes ${queueArn}`;
      const { url, region } = await existingQueue(what, queueArn, reach(queueArn, signal));
      const command = new SetQueueAttributesCommand({ QueueUrl: url, Attributes: attributes });
      await existingQueue(what, url, ask(aws.once.sqsFor(url, region), command, queueArn, signal));
    },
  };
}

/** Throws `connect.queue-missing` if the queue, by its URL or ARN, does not exist. */
export async function existingQueue<Answer>(what: string, queue: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw isMissing(error) ? queueMissing(what, parseArn(queue)?.region ?? regionInQueueUrl(queue)) : error;
  }
}
