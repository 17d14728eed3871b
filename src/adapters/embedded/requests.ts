/** What fauxqs 2.4.1 answers otherwise than S3 does, put right before and after its own routes. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { EmbeddedClock } from './clock.ts';
import type { FauxqsApp } from './fauxqs.ts';
import type { PutEvent } from './notifications.ts';

/** Parts of an object or bucket that fauxqs does not know: it would take their puts and deletes for those of the whole. */
const UNSUPPORTED = [
  'accelerate',
  'acl',
  'analytics',
  'cors',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'logging',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'publicAccessBlock',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'versioning',
  'website',
];

/** The same, and fauxqs would answer a get of them with the object itself. */
const UNREADABLE = ['tagging'];

const NOT_IMPLEMENTED =
  '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NotImplemented</Code><Message>The embedded S3 does not implement this functionality.</Message></Error>';

/** The types of SQS and SNS requests, whose bodies fauxqs parses wherever they are sent to. */
const PARSED_TYPES = ['application/x-www-form-urlencoded', 'application/x-amz-json-1.0'];

interface Corrections {
  readonly region: string;
  /** The time of the Date header. */
  readonly moments: Pick<EmbeddedClock, 'nowMs'>;
  /** Requests wait until the stores are filled. */
  readonly ready: Promise<void>;
}

/** Corrects requests and answers of the app, before it listens. Returns what the put being made now is called in its event. */
export function correctRequests(app: FauxqsApp, { region, moments, ready }: Corrections): () => PutEvent {
  const putEvent = new AsyncLocalStorage<PutEvent>();

  app.addHook('onRequest', async (request, reply) => {
    await ready;
    const [path, query] = request.url.split('?', 2);
    const parameters = new URLSearchParams(query);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if ([...UNREADABLE, ...(isRead ? [] : UNSUPPORTED)].some((name) => parameters.has(name))) {
      return reply.status(501).header('content-type', 'application/xml').send(NOT_IMPLEMENTED);
    }
    // a form's type is what curl --data-binary sends with any file; fauxqs would parse the object
    const type = request.headers['content-type'] ?? '';
    if (path !== '/' && PARSED_TYPES.some((parsed) => type.startsWith(parsed))) {
      request.headers['content-type'] = 'application/octet-stream';
    }
  });

  app.addHook('preHandler', (request, _reply, done) => {
    // curl -T of an empty file sends no body at all
    request.body ??= Buffer.alloc(0);
    putEvent.run(putEventOf(request.method, request.headers), done);
  });

  app.addHook('onSend', async (request, reply) => {
    reply.header('date', new Date(moments.nowMs()).toUTCString());
    // of a bucket: where HeadBucket says the region
    if (request.method === 'HEAD') reply.header('x-amz-bucket-region', region);
  });

  return () => putEvent.getStore() ?? 'ObjectCreated:Put';
}

function putEventOf(method: string, headers: Readonly<Record<string, unknown>>): PutEvent {
  if (headers['x-amz-copy-source'] !== undefined) return 'ObjectCreated:Copy';
  return method === 'POST' ? 'ObjectCreated:Post' : 'ObjectCreated:Put';
}
