/** On which side of a connection a change is made, and which side a finding is about. */
import { parseArn } from '../names.ts';
import { type Side, partsPlace, type Wish } from '../wiring.ts';
import type { Change } from './plan.ts';

/** The side on which a change is made. */
export function sideOfChange(wish: Wish, { part, name }: Pick<Change, 'part' | 'name'>): Side {
  switch (part) {
    case 'topic':
    case 'topic-policy':
    case 'rule':
    case 'target':
    case 'trail':
    case 'notification':
      return bucketSide(wish);
    // the subscription is that of the account of the queue, in the region of the topic
    case 'subscription':
      return { ...queueSide(wish), region: wish.region };
    case 'queue':
    case 'queue-policy':
      return { ...queueSide(wish), region: parseArn(name)?.region ?? wish.region };
  }
}

/** The codes of findings that are about the queues. */
const OF_QUEUES = /^connect\.(?:queue-|redrive$|dead-letters-|letter-|undelivered)/;
const OF_SUBSCRIPTIONS = /^connect\.subscription-/;

/** The side that a finding is about. One about a policy or a key names what it belongs to. */
export function sideOfFinding(wish: Wish, { code, what }: { readonly code: string; readonly what: string }): Side {
  if (OF_SUBSCRIPTIONS.test(code)) return sideOfChange(wish, { part: 'subscription', name: '' });
  const queueArn = /arn:[a-z0-9-]+:sqs:\S+?(?=[ ,:]|$)/.exec(/^connect\.(?:policy-|kms-|denied-)/.test(code) ? what : '')?.[0];
  if (queueArn !== undefined) return sideOfChange(wish, { part: 'queue-policy', name: queueArn });
  return OF_QUEUES.test(code) ? queueSide(wish) : bucketSide(wish);
}

function bucketSide(wish: Wish): Side {
  const { account, region } = partsPlace(wish);
  return { of: 'bucket', account, region };
}

function queueSide({ account, region, queueArn }: Wish): Side {
  return { of: 'queue', account, region: parseArn(queueArn)?.region ?? region };
}
