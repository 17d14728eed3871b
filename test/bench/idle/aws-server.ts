/**
 * AWS of the idle bench, as a process beside it: fauxqs on a free port of the loopback, with the notification configuration and the
 * versioning of buckets, and a count of all requests by service and operation. Its parent sends {@link AwsRequest}s, one after the
 * other, and gets one {@link AwsReply} for each, and one at the start.
 */
import { createFauxqs } from '../../../src/demo/fauxqs.ts';
import { createBucketQueue } from '../bucket-queue.ts';
import { messageWith } from '../../support/servers/queue-message.ts';
import { benchObject, nativeMessage } from '../ingest/messages.ts';
import { accelerate, type FastClock } from './fast-clock.ts';

export type AwsRequest =
  | { readonly kind: 'create-buckets'; readonly buckets: readonly string[] }
  /** Others like it. */
  | { readonly kind: 'clone-bucket'; readonly bucket: string; readonly buckets: readonly string[] }
  /** Events of puts from now on, of one key each, for these buckets in turn. */
  | { readonly kind: 'tell'; readonly eventsPerS: number; readonly buckets: readonly string[] }
  | { readonly kind: 'accelerate'; readonly clock: FastClock }
  /** Answered with the counts, which begin again. */
  | { readonly kind: 'counts' };

export interface AwsReply {
  readonly endpoint: string;
  readonly queueUrl: string;
  /** By `SERVICE Operation`, since they were last asked for. */
  readonly counts: Readonly<Record<string, number>>;
}

const REGION = 'us-east-1';
const NONE = '<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>';

const { app, sqs, s3 } = await createFauxqs(REGION);
const notifications = new Map<string, string>();
let counts = new Map<string, number>();

// S3's bodies at any path, forms apart: those are SNS's
app.addHook('preHandler', async (request, reply) => {
  const operation = operationOf(request);
  counts.set(operation, (counts.get(operation) ?? 0) + 1);
  const [path = '', query = ''] = request.url.split('?', 2);
  const bucket = decodeURIComponent(path.split('/')[1] ?? '');
  const parameters = new URLSearchParams(query);
  const isPut = request.method === 'PUT';
  const answer = (xml: string) => reply.type('application/xml').send(xml);
  if (parameters.has('versioning')) return answer('<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>');
  if (!parameters.has('notification')) return undefined;
  if (isPut) notifications.set(bucket, Buffer.isBuffer(request.body) ? request.body.toString('utf8') : String(request.body));
  return answer(isPut ? '' : (notifications.get(bucket) ?? NONE));
});

app.addHook('onSend', async (request, reply) => {
  reply.header('date', new Date().toUTCString());
  if (request.method === 'HEAD') reply.header('x-amz-bucket-region', REGION);
});

const endpoint = await app.listen({ host: '127.0.0.1', port: 0 });
const bucketQueue = createBucketQueue(sqs, endpoint, 'bucket-events');

process.on('message', (request: AwsRequest) => {
  switch (request.kind) {
    case 'create-buckets':
      for (const bucket of request.buckets) s3.createBucket(bucket);
      return answerParent();
    case 'clone-bucket':
      for (const bucket of request.buckets) {
        s3.createBucket(bucket);
        notifications.set(bucket, notifications.get(request.bucket) ?? NONE);
      }
      return answerParent();
    case 'tell':
      tell(request);
      return answerParent();
    case 'accelerate':
      accelerate(request.clock);
      return answerParent();
    case 'counts':
      answerParent();
      counts = new Map();
  }
});
process.once('disconnect', () => process.exit(0));
answerParent();

function answerParent(): void {
  const reply: AwsReply = { endpoint, queueUrl: bucketQueue.url, counts: Object.fromEntries(counts) };
  process.send?.(reply);
}

/** How often some events are sent. */
const TELL_EVERY_MS = 20;

function tell({ eventsPerS, buckets }: Extract<AwsRequest, { readonly kind: 'tell' }>): void {
  const fromMs = performance.now();
  let told = 0;
  setInterval(() => {
    for (const due = (performance.now() - fromMs) * (eventsPerS / 1_000); told < due; told += 1) {
      const body = nativeMessage(buckets[told % buckets.length] ?? '', benchObject('idle', told), Date.now());
      bucketQueue.enqueue(messageWith(body));
    }
  }, TELL_EVERY_MS);
}

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body?: unknown;
}

function operationOf({ method, url, headers, body }: Asked): string {
  const target = headers['x-amz-target'];
  if (typeof target === 'string') return `SQS ${target.split('.').at(-1) ?? ''}`;
  const [path = '', query = ''] = url.split('?', 2);
  if (path === '/') return actionOf(body);
  const [, , key = ''] = path.split('/');
  const parameters = new URLSearchParams(query);
  const sub =
    ['notification', 'versioning', 'lifecycle', 'list-type'].find((name) => parameters.has(name)) ?? (key === '' ? 'bucket' : 'object');
  return `S3 ${method} ${sub}`;
}

function actionOf(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('Action' in body)) return 'unknown';
  const action = String(body.Action);
  return `${action === 'GetCallerIdentity' ? 'STS' : 'SNS'} ${action}`;
}
