/** What a test or a bench puts into a queue of fauxqs by itself. */
import { createHash, randomUUID } from 'node:crypto';
import type { SqsStore } from '../../../src/demo/fauxqs.ts';

/** A message that was sent now. */
export function messageWith(body: string): Parameters<ReturnType<SqsStore['createQueue']>['enqueue']>[0] {
  return {
    messageId: randomUUID(),
    body,
    md5OfBody: createHash('md5').update(body).digest('hex'),
    messageAttributes: {},
    md5OfMessageAttributes: '',
    sentTimestamp: Date.now(),
    approximateReceiveCount: 0,
  };
}
