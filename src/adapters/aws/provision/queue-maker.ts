/** Reads and makes the two queues of an installation. */
import { CreateQueueCommand, GetQueueAttributesCommand, GetQueueUrlCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { FaultError } from '../../../domain/fault.ts';
import type { QueueMaker } from '../../../pipeline/ports/queue-pair.ts';
import { asking, isMissing, optionsOf } from './refusals.ts';

export function createQueueMaker({ sqs, identity }: { readonly sqs: SQSClient; readonly identity: () => Promise<STSClient> }): QueueMaker {
  return {
    async account(signal) {
      const send = async () => (await identity()).send(new GetCallerIdentityCommand({}), optionsOf(signal));
      const { Account } = await asking('GetCallerIdentity', 'sts:GetCallerIdentity', send, signal);
      if (Account === undefined) throw new FaultError('connect.unavailable', 'GetCallerIdentity: the answer names no account');
      return Account;
    },
    async queueNamed(name, signal) {
      try {
        const find = () => sqs.send(new GetQueueUrlCommand({ QueueName: name }), optionsOf(signal));
        const { QueueUrl = '' } = await asking(`GetQueueUrl ${name}`, 'sqs:GetQueueUrl', find, signal);
        const read = () => sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }), optionsOf(signal));
        const { Attributes = {} } = await asking(`GetQueueAttributes ${name}`, 'sqs:GetQueueAttributes', read, signal);
        return { url: QueueUrl, attributes: Attributes };
      } catch (error) {
        if (isMissing(error)) return 'absent';
        throw error;
      }
    },
    async createQueue(name, attributes, signal) {
      const send = () => sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }), optionsOf(signal));
      await asking(`CreateQueue ${name}`, 'sqs:CreateQueue', send, signal);
    },
  };
}
