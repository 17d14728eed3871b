/** What leaves for S3 as a HEAD, at the other end of the wire, beside what the SDK sends for the same object. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { afterEach, expect, it, vi } from 'vitest';
import { createAwsClients } from '../../../src/adapters/aws/clients.ts';
import { sendHead } from '../../../src/adapters/aws/s3-head.ts';
import { createS3Storage } from '../../../src/adapters/aws/s3-storage.ts';
import { signatureMistake } from '../../support/sigv4.ts';

const signer = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalr/EXAMPLE+KEY',
  region: 'eu-west-1',
  service: 's3',
  sessionToken: 'session',
};
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

type Answer = { readonly status: number; readonly headers?: Readonly<Record<string, string>> };

async function startS3(answer: (attempt: number) => Answer) {
  const seen: { method: string; path: string; headers: IncomingMessage['headers']; body: string }[] = [];
  const server = createServer(({ method = '', url: path = '', headers }, outgoing) => {
    seen.push({ method, path, headers, body: '' });
    const { status, headers: named } = answer(seen.length);
    outgoing.writeHead(status, { 'x-amz-request-id': 'TESTREQUEST00001', ...named }).end();
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  stops.push(() => new Promise((resolve) => void server.close(resolve)));
  const aws = createAwsClients({
    region: signer.region,
    endpoints: { s3: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    credentials: signer,
    s3: { forcePathStyle: true, timeoutMs: 5_000, connectionsMax: 4 },
    sqs: { receivesMax: 1, waitS: 1 },
  });
  stops.push(() => aws.close());
  return { seen, client: aws.s3For(signer.region) };
}

const attempt = () => () => undefined;

it.each(['plain', 'a b+c&d=e?f#g%25', "sub/!'()*~/ünï 😀", '/leading', 'double//slash/', '../dots/./x', 'k'.repeat(1_024)])(
  'a HEAD of the key %s has the address and the condition of the SDK’s, and a signature that S3 accepts',
  async (Key) => {
    const { seen, client } = await startS3(() => ({ status: 200 }));
    const input = { Bucket: 'some-bucket', Key, VersionId: 'v+1/=', IfMatch: '"abc"', ExpectedBucketOwner: '123456789012' };
    await client.send(new HeadObjectCommand(input));
    await sendHead(client, input, { attempt });
    const [bySdk, own] = seen;
    const query = (path = ''): unknown => Object.fromEntries(new URLSearchParams(path.split('?')[1]?.replace('x-id=HeadObject', '')));
    expect(own?.path.split('?')[0]).toBe(bySdk?.path.split('?')[0]);
    expect(query(own?.path)).toEqual(query(bySdk?.path));
    for (const name of ['host', 'if-match', 'x-amz-expected-bucket-owner', 'x-amz-content-sha256', 'x-amz-security-token'])
      expect(own?.headers[name]).toBe(bySdk?.headers[name]);
    expect(own && signatureMistake(own, signer)).toBeUndefined();
  },
);

it.each([500, 503, 429, 400, 403, 404, 412])('a HEAD that is answered with %d fails with the error of the SDK', async (status) => {
  const { client } = await startS3(() => ({ status }));
  const input = { Bucket: 'some-bucket', Key: 'k' };
  const faultOf = (request: Promise<unknown>) => request.then(null, ({ name, message }: Error) => ({ name, message }));
  const bySdk = await faultOf(client.send(new HeadObjectCommand(input)));
  expect(await faultOf(sendHead(client, input, { attempt }))).toEqual(bySdk);
});

it.each([500, 503, 429])('a HEAD that S3 answers with %d is sent once more, and no further time', async (status) => {
  const { seen, client } = await startS3(() => ({ status }));
  await expect(sendHead(client, { Bucket: 'some-bucket', Key: 'k' }, { attempt })).rejects.toMatchObject({
    $metadata: { httpStatusCode: status },
  });
  expect(seen).toHaveLength(2);
});

it('a HEAD that waits for its retry, as long as S3 asked for, is given up at once if it is aborted', async () => {
  const { seen, client } = await startS3(() => ({ status: 503, headers: { 'retry-after': '60' } }));
  const [strategy, stop] = [await client.config.retryStrategy(), new AbortController()];
  if (!('refreshRetryTokenForRetry' in strategy)) throw new Error('the SDK has another strategy of retries');
  const refresh = strategy.refreshRetryTokenForRetry.bind(strategy);
  let isOver = false;
  const wait = vi.spyOn(strategy, 'refreshRetryTokenForRetry').mockImplementation((...arguments_) => {
    setImmediate(() => stop.abort(new Error('stopped')));
    return refresh(...arguments_).finally(() => (isOver = true));
  });
  const storage = createS3Storage({ clientFor: () => client, region: signer.region, clock: { monotonicMs: () => performance.now() } });
  const target = { bucket: 'some-bucket', region: signer.region };
  await expect(storage.observe(target, 'k', stop.signal)).rejects.toThrow('stopped');
  expect(isOver).toBe(false);
  expect(seen).toHaveLength(1);
  expect(wait.mock.calls[0]?.[1].retryAfterHint?.getTime()).toBeGreaterThan(Date.now());
});

it.each([403, 404, 412])('a HEAD that S3 answers with %d is not sent again', async (status) => {
  const { seen, client } = await startS3(() => ({ status }));
  await expect(sendHead(client, { Bucket: 'some-bucket', Key: 'k' }, { attempt })).rejects.toThrow();
  expect(seen).toHaveLength(1);
});

it('a HEAD that S3 refuses because this machine’s clock is wrong is signed again by the clock of S3', async () => {
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  const { seen, client } = await startS3((number) => ({ status: number === 1 ? 403 : 200, headers: { date } }));
  await sendHead(client, { Bucket: 'some-bucket', Key: 'k' }, { attempt });
  const signedAt = seen.map(({ headers }) => Number(String(headers['x-amz-date']).slice(9, 11)));
  expect(((signedAt[1] ?? 0) - (signedAt[0] ?? 0) + 24) % 24).toBeGreaterThanOrEqual(1);
});

it.each(['content-length', 'last-modified'])('an answer whose %s cannot be read is no answer', async (name) => {
  const { client } = await startS3(() => ({
    status: 200,
    headers: name === 'content-length' ? { [name]: '99999999999999999999' } : { [name]: 'yesterday' },
  }));
  await expect(sendHead(client, { Bucket: 'some-bucket', Key: 'k' }, { attempt })).rejects.toThrow(/cannot be read|Parse Error/);
});
