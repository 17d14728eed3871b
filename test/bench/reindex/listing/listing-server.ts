/**
 * A small S3 of the tests’ own: computed buckets (see key-space.ts) that can be changed while they are listed.
 * It listens on loopback, by path-style addresses, and checks no signature.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createContents } from './contents.ts';
import type { Contents } from './contents.ts';
import { createKeySpace } from './key-space.ts';
import type { KeyShape, ListedState } from './key-space.ts';
import { keyOfToken, renderPage } from './listing-page.ts';
import { closeServer, listen } from '../../../support/servers/listening.ts';

type Operation = 'list' | 'head' | 'head-bucket' | 'versioning' | 'location' | 'lifecycle';

/** What a request asks for. */
interface ListingRequest {
  readonly operation: Operation;
  readonly bucket: string;
  /** Of a HEAD the key; of a listing the key after which its page begins. */
  readonly key: string;
  readonly prefix: string;
}

/** Requests answered since the server began or `resetCounts`, by kind. */
export type RequestCounts = Readonly<Record<Operation | 'keysListed', number>>;

export interface ListingServer {
  /** What AWS_ENDPOINT_URL_S3 is set to. */
  readonly url: string;
  /** Makes a bucket, with the first `count` keys of a shape, and gives its contents, which may be changed at any time. */
  createBucket(name: string, shape?: KeyShape, count?: number): Contents;
  /** Called with each request first. Where it returns true, it has answered in the place of S3, as a proxy may. */
  setForger(forger: Forger | undefined): void;
  /** Awaited before each request is answered from the contents: the moment to change them. */
  beforeAnswer(handler: ((request: ListingRequest) => void | Promise<void>) | undefined): void;
  counts(): RequestCounts;
  resetCounts(): void;
  close(): Promise<void>;
}

export type Forger = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

/** S3's own limit of a page. */
const PAGE_MAX = 1_000;
const REGION = 'us-east-1';

/** Starts the server. */
export async function startListingServer(): Promise<ListingServer> {
  const buckets = new Map<string, Contents>();
  let forger: Forger | undefined;
  let hook: ((request: ListingRequest) => void | Promise<void>) | undefined;
  let counts = noRequests();

  function createBucket(name: string, shape: KeyShape = 'flat', count = 0): Contents {
    const contents = createContents(createKeySpace(shape, count));
    buckets.set(name, contents);
    return contents;
  }

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (forger?.(incoming, outgoing) === true) return;
    // every answer of S3 has one, whatever its status
    outgoing.setHeader('x-amz-request-id', 'TESTREQUEST00001');
    const question = questionOf(incoming, PAGE_MAX);
    if (question === undefined) return refuse(outgoing, { status: 501, code: 'NotImplemented' });
    counts[question.operation] += 1;
    await hook?.(question);
    const contents = buckets.get(question.bucket);
    if (contents === undefined) return refuse(outgoing, { status: 404, code: 'NoSuchBucket' });
    if (question.operation === 'list') counts.keysListed += answerList(outgoing, { contents, question });
    else answer(outgoing, { question, state: contents.get(question.key) });
  }

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch((error: unknown) => {
      refuse(outgoing, { status: 400, code: 'InvalidRequest', message: String(error) });
    });
  });
  // a client's idle connection is not closed under its next request
  server.keepAliveTimeout = 60_000;
  const url = `http://127.0.0.1:${await listen(server)}`;

  return {
    url,
    createBucket,
    setForger(wanted) {
      forger = wanted;
    },
    beforeAnswer(handler) {
      hook = handler;
    },
    counts: () => ({ ...counts }),
    resetCounts() {
      counts = noRequests();
    },
    close: () => closeServer(server),
  };
}

function noRequests(): Record<keyof RequestCounts, number> {
  return { list: 0, head: 0, 'head-bucket': 0, versioning: 0, location: 0, lifecycle: 0, keysListed: 0 };
}

export interface Question extends ListingRequest {
  readonly limit: number;
  readonly isEncoded: boolean;
}

/** What is asked, or undefined where this server has no answer. */
export function questionOf({ method, url = '/' }: IncomingMessage, pageMax: number): Question | undefined {
  const [path = '', search = ''] = split(url, '?');
  const [bucket = '', rawKey = ''] = split(path.slice(1), '/');
  const query = new URLSearchParams(search);
  const operation = operationOf(method, rawKey, query);
  if (operation === undefined || query.has('delimiter')) return undefined;
  const token = query.get('continuation-token');
  const after = token === null ? (query.get('start-after') ?? '') : keyOfToken(token);
  return {
    operation,
    bucket,
    key: operation === 'list' ? after : decodeURIComponent(rawKey),
    prefix: query.get('prefix') ?? '',
    limit: Math.min(pageMax, Number(query.get('max-keys') ?? PAGE_MAX)),
    isEncoded: query.get('encoding-type') === 'url',
  };
}

function operationOf(method: string | undefined, key: string, query: URLSearchParams): Operation | undefined {
  if (method === 'HEAD') return key === '' ? 'head-bucket' : 'head';
  if (method !== 'GET' || key !== '') return undefined;
  if (query.get('list-type') === '2') return 'list';
  return (['versioning', 'location', 'lifecycle'] as const).find((name) => query.has(name));
}

function split(text: string, sign: string): readonly string[] {
  const at = text.indexOf(sign);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

interface ListAnswer {
  readonly contents: Contents;
  readonly question: Question;
}

/** Answers a page, and returns how many keys were in it. */
function answerList(outgoing: ServerResponse, { contents, question }: ListAnswer): number {
  const page = renderPage(contents, { ...question, after: question.key });
  // not the string's length, which counts other units
  const body = Buffer.from(page.body);
  outgoing.writeHead(200, { 'content-type': 'application/xml', 'content-length': body.byteLength, 'x-amz-bucket-region': REGION });
  outgoing.end(body);
  return page.keys;
}

function answer(
  outgoing: ServerResponse,
  { question, state }: { readonly question: Question; readonly state: ListedState | undefined },
): void {
  switch (question.operation) {
    case 'head':
      // chunked, as S3 says it: without a length, the client must close the connection
      if (state === undefined)
        outgoing.writeHead(404, 'Not Found', { 'content-type': 'application/xml', 'transfer-encoding': 'chunked' }).end();
      else outgoing.writeHead(200, headersOf(state)).end();
      return;
    case 'head-bucket':
      outgoing.writeHead(200, { 'x-amz-bucket-region': REGION }).end();
      return;
    case 'versioning':
      answerXml(outgoing, '<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>');
      return;
    case 'location':
      answerXml(outgoing, '<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>');
      return;
    case 'lifecycle':
      refuse(outgoing, { status: 404, code: 'NoSuchLifecycleConfiguration' });
      return;
    case 'list':
      throw new Error('listings are answered by answerList');
  }
}

function headersOf(state: ListedState): Record<string, string | number> {
  return {
    etag: `"${state.etag}"`,
    'content-length': state.sizeBytes,
    'last-modified': new Date(state.lastModifiedMs).toUTCString(),
    // S3 says nothing of the class that is the usual one
    ...(state.storageClass !== 'STANDARD' && { 'x-amz-storage-class': state.storageClass }),
  };
}

function answerXml(outgoing: ServerResponse, body: string): void {
  outgoing.writeHead(200, { 'content-type': 'application/xml' }).end(`<?xml version="1.0" encoding="UTF-8"?>\n${body}`);
}

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message?: string;
}

function refuse(outgoing: ServerResponse, { status, code, message = code }: Refusal): void {
  if (outgoing.headersSent) {
    outgoing.destroy();
    return;
  }
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message><RequestId>test</RequestId></Error>`;
  // the words of the status line: all that a HEAD has to say which error it is
  outgoing.writeHead(status, code, { 'content-type': 'application/xml' }).end(body);
}
