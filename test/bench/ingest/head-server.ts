/**
 * An S3 that answers HEAD requests after a fixed time, as a process beside those under measurement. Its parent sends one
 * {@link HeadServerRequest} to start it, and one whenever it wants to know what was requested so far.
 */
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export type HeadServerRequest =
  | {
      readonly kind: 'start';
      readonly latencyMs: number;
      readonly certificate: { readonly key: string; readonly cert: string } | undefined;
    }
  | { readonly kind: 'count' };

export interface HeadServerReply {
  readonly port: number;
  /** Requests about objects, and how many of them were about one key. */
  readonly heads: number;
  readonly headsOfOneKeyMax: number;
}

const headsByKey = new Map<string, number>();
let port = 0;

process.on('message', (request: HeadServerRequest) => {
  if (request.kind === 'start') start(request);
  else reply();
});
process.once('disconnect', () => process.exit(0));

function start({ latencyMs, certificate }: Extract<HeadServerRequest, { kind: 'start' }>): void {
  const answer = listener(latencyMs);
  const server = certificate === undefined ? createServer(answer) : createTlsServer(certificate, answer);
  // a client's idle connection is not closed under its next request
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => {
    port = (server.address() as AddressInfo).port;
    reply();
  });
}

/** Every key has an object, with the headers that S3 sends; a path without a key is the bucket. */
function listener(latencyMs: number): RequestListener {
  return ({ url = '/' }, outgoing) => {
    const [, , key] = /^\/([^/?]+)\/?([^?]*)/.exec(url) ?? [];
    const headers = {
      'x-amz-id-2': AMZ_ID,
      'x-amz-request-id': 'BENCHREQUEST0001',
      server: 'AmazonS3',
      'x-amz-bucket-region': 'us-east-1',
    };
    if (key === undefined || key === '') {
      outgoing.writeHead(200, headers).end();
      return;
    }
    headsByKey.set(key, (headsByKey.get(key) ?? 0) + 1);
    setTimeout(() => {
      outgoing.writeHead(200, { ...headers, ...OBJECT_HEADERS }).end();
    }, latencyMs);
  };
}

const AMZ_ID = Buffer.alloc(56, 'bench').toString('base64');
const OBJECT_HEADERS = {
  'last-modified': 'Sat, 21 Nov 2026 09:45:12 GMT',
  etag: '"9c6465fa7f48f5cacd23014631ec1136"',
  'x-amz-server-side-encryption': 'AES256',
  'x-amz-meta-origin': 'bench',
  'accept-ranges': 'bytes',
  'content-type': 'application/json',
  'content-length': '1234',
};

function reply(): void {
  const counts = [...headsByKey.values()];
  const answer: HeadServerReply = {
    port,
    heads: counts.reduce((sum, heads) => sum + heads, 0),
    headsOfOneKeyMax: counts.reduce((most, heads) => Math.max(most, heads), 0),
  };
  process.send?.(answer);
}
