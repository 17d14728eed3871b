/**
 * The webhook receiver: a separate listener to which stores post a bucket's events, so that they cannot reach the rest of the API.
 *
 *   POST ──► the bucket's token? ──► its rate, room in memory ──► body ──► the bucket queue has it ──► 204
 *                   401                  429         503        408 413            503
 *
 * It reads no event: what a body says is decided where its message is received (events/envelope.ts). A store that can retry
 * sends again what is refused; what is accepted is in the queue already.
 */
import { LRUCache } from 'lru-cache';
import type { FastifyRequest } from 'fastify';
import type { BucketRecord } from '../records/bucket.ts';
import { isBucketName } from '../base/bucket-name.ts';
import { faultOf } from '../base/fault.ts';
import { inTime } from '../base/in-time.ts';
import { RequestError } from '../base/request-error.ts';
import { isWebhookToken } from '../connect/sources/webhook.ts';
import { MESSAGE_BYTES_MAX } from '../events/dead-letter.ts';
import { postedTo } from '../events/envelope.ts';
import type { FailedAttempts } from '../identity/audit.ts';
import { createCounter } from '../identity/authenticate-key.ts';
import { BUCKET_RECORD_AGE_MAX_MS } from '../ordering/constants.ts';
import type { QueueClient } from '../aws/queues.ts';
import type { WithPorts } from '../store/store.ts';
import { readRecord, refs } from '../store/stored.ts';
import { addressOf } from './caller.ts';
import { createServer, listenerOf, type Address, type Listener } from './server.ts';

interface WebhookParts extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly address: Address;
  /** The bucket queue. */
  readonly queueUrl: string;
  readonly queues: Pick<QueueClient, 'send'>;
  readonly attempts: Pick<FailedAttempts, 'failed'>;
  readonly trustedProxies?: readonly string[] | undefined;
  /** How long a request may take to arrive. Default: as for every server. */
  readonly requestTimeoutMs?: number;
  /** The most requests of one bucket a second. Default: {@link REQUESTS_PER_S}. */
  readonly requestsPerS?: number;
}

/** For stores that can set only a URL. */
const PATHS = ['/events/{bucket}', '/events/{bucket}/{token}'] as const;

/** SQS's largest message, less room for the up to three attributes of a dead letter. */
const BODY_BYTES_MAX = MESSAGE_BYTES_MAX - 4_096;
/** The bytes of bodies in memory. While a body is written to the queue, it takes five times its length. */
const IN_HAND_BYTES_MAX = 33_554_432;
/** The bytes of one bucket, so that slow senders leave room for others. */
const IN_HAND_OF_BUCKET_BYTES_MAX = IN_HAND_BYTES_MAX / 2;
/** The memory of a request besides its body. */
const REQUEST_BYTES = 4_096;
/** Each event costs a HEAD, of which a worker sends some 3,000 a second for all buckets. */
const REQUESTS_PER_S = 1_000;
/** The records of some hundred busy buckets are read every ten seconds. Beyond that, requests that guess bucket names would cost more than genuine ones. */
const READS_PER_S = 100;
const SECOND_MS = 1_000;
/** Buckets whose records are cached. */
const CACHED_MAX = 1_000;
/** A hanging index store must not hold a request for longer than its sender waits. */
const READ_MAX_MS = 5_000;
/** SQS outages seldom last less. */
const RETRY_AFTER_S = 5;

interface CachedRecord {
  readonly record: BucketRecord | undefined;
  readonly readAtMs: number;
}

/** Creates the listener. */
export function createWebhookListener(parts: WebhookParts): Listener {
  const {
    address,
    queueUrl,
    queues,
    state,
    clock,
    telemetry,
    attempts,
    trustedProxies,
    requestTimeoutMs,
    requestsPerS = REQUESTS_PER_S,
  } = parts;
  const rows = PATHS.map((path) => ({ method: 'POST', path }) as const);
  const app = createServer({ telemetry, rows, trustedProxies, requestTimeoutMs, bodyBytesMax: BODY_BYTES_MAX });
  const cached = new LRUCache<string, CachedRecord>({ max: CACHED_MAX });
  const reads = new Map<string, Promise<BucketRecord | undefined>>();
  const countRead = createCounter(clock, { windowMs: SECOND_MS, countMax: READS_PER_S });
  const countRequest = createCounter(clock, { windowMs: SECOND_MS, countMax: requestsPerS });
  const inHand = new Map<string, number>();
  let allInHand = 0;

  /** One read of a bucket's record serves all requests that wait for it: stores send hundreds of events at once. */
  function readBucket(bucket: string): Promise<BucketRecord | undefined> {
    const running = reads.get(bucket);
    if (running !== undefined) return running;
    const reading = inTime(readRecord(state, refs.bucket(bucket)), AbortSignal.timeout(READ_MAX_MS)).finally(() => reads.delete(bucket));
    reads.set(bucket, reading);
    return reading;
  }

  /**
   * Whether the token is one of the bucket's. A token that is not in the cached record may be new. While the store does not answer,
   * the cached record counts: the queue is there for that. Throws `request.overloaded` when it cannot tell.
   */
  async function isTokenOf(bucket: string, token: string): Promise<boolean> {
    const readAtMs = clock.monotonicMs();
    const last = cached.get(bucket);
    const isCached = isWebhookToken(last?.record, token);
    if (last !== undefined && isCached) {
      if (readAtMs - last.readAtMs < BUCKET_RECORD_AGE_MAX_MS) return true;
      // this request reads again, while the others go on
      cached.set(bucket, { ...last, readAtMs });
    } else if (!reads.has(bucket) && countRead('') !== undefined) throw retryLater('too many unknown tokens arrive', 1);
    try {
      const record = await readBucket(bucket);
      cached.set(bucket, { record, readAtMs });
      return isWebhookToken(record, token);
    } catch (error) {
      if (isCached) return true;
      telemetry.requestFailed('read the tokens of a webhook', error);
      throw retryLater('Tally cannot read the tokens now', RETRY_AFTER_S);
    }
  }

  /** Reserves memory for the body until the response has ended. */
  function reserveMemory(bucket: string, { headers }: FastifyRequest): () => void {
    const bytes = REQUEST_BYTES + Number(headers['content-length'] ?? BODY_BYTES_MAX);
    if (bytes > REQUEST_BYTES + BODY_BYTES_MAX) throw tooLarge();
    const ofBucket = inHand.get(bucket) ?? 0;
    if (allInHand + bytes > IN_HAND_BYTES_MAX || ofBucket + bytes > IN_HAND_OF_BUCKET_BYTES_MAX)
      throw retryLater('Tally holds too many bodies', 1);
    allInHand += bytes;
    inHand.set(bucket, ofBucket + bytes);
    return () => {
      allInHand -= bytes;
      const left = (inHand.get(bucket) ?? 0) - bytes;
      if (left === 0) inHand.delete(bucket);
      else inHand.set(bucket, left);
    };
  }

  async function enqueue(bucket: string, body: string): Promise<void> {
    try {
      await queues.send(queueUrl, { body, attributes: postedTo(bucket) });
    } catch (error) {
      if (faultOf(error).code === 'message.too-large') throw tooLarge();
      telemetry.requestFailed('write a posted event to the bucket queue', error);
      throw retryLater('the bucket queue does not accept it now', RETRY_AFTER_S);
    }
  }

  app.removeAllContentTypeParsers();
  // stores send many content types, or none
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  for (const path of PATHS)
    app.route<{ Params: { readonly bucket: string; readonly token?: string } }>({
      method: 'POST',
      url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      async onRequest(request, reply) {
        const { bucket, token = tokenIn(request.headers.authorization) } = request.params;
        if (!isBucketName(bucket) || token === undefined || !(await isTokenOf(bucket, token))) {
          attempts.failed({ address: addressOf(request), reason: 'webhook token unknown' });
          throw new RequestError('authentication.failed', "the request lacks this bucket's token");
        }
        const waitMs = countRequest(bucket);
        if (waitMs !== undefined)
          throw new RequestError('request.rate-limited', `this bucket received more than ${requestsPerS} requests in a second`, {
            retry_after_s: Math.max(1, Math.ceil(waitMs / SECOND_MS)),
          });
        reply.raw.once('close', reserveMemory(bucket, request));
      },
      async handler({ params: { bucket }, body }, reply) {
        await enqueue(bucket, textOf(body));
        return reply.code(204).send();
      },
      onResponse: async (_request, { statusCode }) => telemetry.count('tally_webhook_requests_total', 1, { result: resultOf(statusCode) }),
    });
  return listenerOf(app, address);
}

/** The token as bearer, or as the password of a user with any name. */
function tokenIn(authorization = ''): string | undefined {
  const [, kind = '', value = ''] = /^(Bearer|Basic)\s+(\S+)\s*$/i.exec(authorization) ?? [];
  if (kind.toLowerCase() === 'bearer') return value;
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(value, 'base64').toString()) ?? [];
  return password;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** The characters that SQS accepts (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html). JSON can escape all others. */
const NOT_IN_SQS = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;

/** The body in a form that SQS accepts. Throws `request.invalid` if it contains no event. */
function textOf(body: unknown): string {
  try {
    const text = Buffer.isBuffer(body) ? UTF8.decode(body) : '';
    if (text.trim() !== '')
      return text.replaceAll(NOT_IN_SQS, (each) => String.raw`\u${(each.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);
  } catch {
    throw new RequestError('request.invalid', 'the body is not UTF-8');
  }
  throw new RequestError('request.invalid', 'the body is empty');
}

function retryLater(what: string, retryAfterS: number): RequestError {
  return new RequestError('request.overloaded', `${what}: send it again later`, { retry_after_s: retryAfterS });
}

function tooLarge(): RequestError {
  return new RequestError('request.too-large', 'the body is larger than the bucket queue accepts');
}

function resultOf(status: number): 'queued' | 'refused' | 'later' {
  if (status < 300) return 'queued';
  return status === 429 || status >= 500 ? 'later' : 'refused';
}
