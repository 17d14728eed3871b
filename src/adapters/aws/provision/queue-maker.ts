/** Reads and makes the two queues of an installation. */
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { FaultError } from '../../../domain/fault.ts';
import type { NamedQueue, QueueMaker } from '../../../pipeline/ports/queue-pair.ts';
import { ask, orAbsent } from './refusals.ts';

export function createQueueMaker({ sqs, identity }: { readonly sqs: SQSClient; readonly identity: () => Promise<STSClient> }): QueueMaker {
  return {
    async account(signal) {
      const client = await identity();
      const command = new GetCallerIdentityCommand({});
      const { Account } = await ask('sts:GetCallerIdentity', '', (options) => client.send(command, options), signal);
      if (Account === undefined) throw new FaultError('connect.unavailable', 'GetCallerIdentity: the answer names no account');
      return Account;
    },
    queueNamed: (name, signal) => orAbsent(queueNamed(name, signal)),
    async createQueue(name, attributes, signal) {
      const command = new CreateQueueCommand({ QueueName: name, Attributes: attributes });
      await ask('sqs:CreateQueue', name, (options) => sqs.send(command, options), signal);
    },
    async setAttributes(url, attributes, signal) {
      const command = new SetQueueAttributesCommand({ QueueUrl: url, Attributes: attributes });
      await ask('sqs:SetQueueAttributes', url, (options) => sqs.send(command, options), signal);
    },
  };

  async function queueNamed(name: string, signal?: AbortSignal): Promise<NamedQueue> {
    const find = new GetQueueUrlCommand({ QueueName: name });
    const { QueueUrl = '' } = await ask('sqs:GetQueueUrl', name, (options) => sqs.send(find, options), signal);
    const read = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] });
    const { Attributes = {} } = await ask('sqs:GetQueueAttributes', name, (options) => sqs.send(read, options), signal);
    return { url: QueueUrl, attributes: Attributes };
  }
}
