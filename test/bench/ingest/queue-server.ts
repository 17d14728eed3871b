/**
 * The queue of the runs, as a process of its own: fauxqs on a free port of the loopback, filled directly rather than by
 * 50,000 requests. Its parent sends {@link QueueRequest}s, one after the other, and gets one {@link QueueReply} for each, and one at the start.
 */
import { createFauxqs } from '../../../src/demo/fauxqs.ts';
import { createBucketQueue } from '../bucket-queue.ts';
import { messageWith } from '../../support/servers/queue-message.ts';
import { BUCKET, benchObject, nativeMessage, routedMessage } from './messages.ts';

export type QueueRequest =
  | { readonly kind: 'create-queue'; readonly queue: string }
  /** Objects with the numbers 0 to count − 1 of the run, for HEADs; small ones. */
  | { readonly kind: 'put-objects'; readonly run: string; readonly count: number }
  | Fill
  /** Answered when every message of the last fill was deleted. */
  | { readonly kind: 'await-drained' };

/** `messages` messages of which `repeats`, one after the other, tell of the same object. */
export interface Fill {
  readonly kind: 'fill';
  readonly queue: string;
  readonly dialect: 'native' | 'routed';
  readonly run: string;
  readonly messages: number;
  readonly repeats: number;
  /** How long before they are sent the changes happened. */
  readonly ageMs: number;
}

export interface QueueReply {
  readonly endpoint: string;
  /** CPU of this process since it began. */
  readonly cpuUs: number;
  /** Requests for an object's metadata since the last `put-objects`, and the most of them for one key. */
  readonly heads: number;
  readonly headsOfOneKeyMax: number;
  readonly error?: string;
}

/** At most so many messages wait at once, more come in as they are taken: shifting an array of 500,000 would measure V8. */
const VISIBLE_MAX = 50_000;

const { app, sqs, s3 } = await createFauxqs('us-east-1');
s3.createBucket(BUCKET);
const endpoint = await app.listen({ host: '127.0.0.1', port: 0 });

type Queue = NonNullable<ReturnType<typeof sqs.getQueueByName>>;

let drained = Promise.resolve();
const headsByKey = new Map<string, number>();

const headObject = s3.headObject.bind(s3);
s3.headObject = (bucket, key) => {
  headsByKey.set(key, (headsByKey.get(key) ?? 0) + 1);
  return headObject(bucket, key);
};

process.on('message', (request: QueueRequest) => {
  handle(request).then(
    () => reply(),
    (error: unknown) => reply(String(error)),
  );
});
process.once('disconnect', () => process.exit(0));
reply();

function reply(error?: string): void {
  const { user, system } = process.cpuUsage();
  const answer: QueueReply = {
    endpoint,
    cpuUs: user + system,
    heads: headsByKey.values().reduce((sum, heads) => sum + heads, 0),
    headsOfOneKeyMax: Math.max(0, ...headsByKey.values()),
    ...(error !== undefined && { error }),
  };
  process.send?.(answer);
}

async function handle(request: QueueRequest): Promise<void> {
  switch (request.kind) {
    case 'create-queue':
      createBucketQueue(sqs, endpoint, request.queue);
      return;
    case 'put-objects':
      putObjects(request);
      return;
    case 'fill':
      fill(request);
      return;
    case 'await-drained':
      await drained;
  }
}

function putObjects({ run, count }: Extract<QueueRequest, { kind: 'put-objects' }>): void {
  headsByKey.clear();
  for (let number = 0; number < count; number += 1) {
    s3.putObject(BUCKET, benchObject(run, number).key, Buffer.from(String(number)), 'text/plain');
  }
}

function fill(request: Fill): void {
  const queue = sqs.getQueueByName(request.queue);
  if (queue === undefined) throw new Error(`no queue ${request.queue}`);
  let put = 0;
  let deleted = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  drained = promise;

  function topUp(target: Queue): void {
    const until = Math.min(request.messages, deleted + VISIBLE_MAX);
    for (; put < until; put += 1) target.enqueue(messageOf(request, put));
  }

  const deleteMessage = queue.deleteMessage.bind(queue);
  queue.deleteMessage = (receiptHandle) => {
    const isNew = deleteMessage(receiptHandle);
    if (!isNew) return false;
    deleted += 1;
    if (deleted % 1_000 === 0) topUp(queue);
    if (deleted === request.messages) {
      queue.deleteMessage = deleteMessage;
      resolve();
    }
    return true;
  };
  topUp(queue);
}

function messageOf({ dialect, run, repeats, ageMs }: Fill, number: number): Parameters<Queue['enqueue']>[0] {
  const object = benchObject(run, Math.floor(number / repeats));
  const atMs = Date.now() - ageMs;
  return messageWith(dialect === 'native' ? nativeMessage(BUCKET, object, atMs) : routedMessage(BUCKET, object, atMs));
}
