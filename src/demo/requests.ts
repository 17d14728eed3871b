/** Corrects requests and answers of fauxqs 2.4.1, before and after its routes, where it behaves differently from S3. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { EmbeddedClock } from './clock.ts';
import type { FauxqsApp } from './fauxqs.ts';

/** Subresources that fauxqs does not support: it would apply their puts and deletes to the object or bucket itself. */
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

/** Subresources that fauxqs does not support and whose GET it would answer with the object itself. */
const UNREADABLE = ['tagging'];

const NOT_IMPLEMENTED =
  '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NotImplemented</Code><Message>The embedded S3 does not implement this functionality.</Message></Error>';

/** The content types of SQS and SNS requests. fauxqs parses bodies of these types at any path. */
const PARSED_TYPES = ['application/x-www-form-urlencoded', 'application/x-amz-json-1.0'];

interface Corrections {
  readonly region: string;
  /** The clock for the Date header. */
  readonly moments: Pick<EmbeddedClock, 'nowMs'>;
  /** Requests wait for it. It resolves when the stores are loaded. */
  readonly ready: Promise<void>;
}

/** Corrects requests and answers of the app. It must be called before the app listens. Returns a function that returns the bucket of the request that is being processed. */
export function correctRequests(app: FauxqsApp, { region, moments, ready }: Corrections): () => string {
  const bucket = new AsyncLocalStorage<string>();

  app.addHook('onRequest', async (request, reply) => {
    await ready;
    const [path, query] = request.url.split('?', 2);
    const parameters = new URLSearchParams(query);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if ([...UNREADABLE, ...(isRead ? [] : UNSUPPORTED)].some((name) => parameters.has(name))) {
      return reply.status(501).header('content-type', 'application/xml').send(NOT_IMPLEMENTED);
    }
    // curl --data-binary sends every file with the content type of a form, and fauxqs would parse the object
    const type = request.headers['content-type'] ?? '';
    if (path !== '/' && PARSED_TYPES.some((parsed) => type.startsWith(parsed))) {
      request.headers['content-type'] = 'application/octet-stream';
    }
  });

  app.addHook('preHandler', (request, _reply, done) => {
    // curl -T sends no body for an empty file
    request.body ??= Buffer.alloc(0);
    bucket.run(/^\/([^/?]*)/.exec(request.url)?.[1] ?? '', done);
  });

  app.addHook('onSend', async (request, reply) => {
    reply.header('date', new Date(moments.nowMs()).toUTCString());
    // HeadBucket returns the region in this header
    if (request.method === 'HEAD') reply.header('x-amz-bucket-region', region);
  });

  return () => bucket.getStore() ?? '';
}
