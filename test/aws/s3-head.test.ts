/** What leaves for S3 as a HEAD, at the other end of the wire, beside what the SDK sends for the same object. */
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { expect, it, vi } from 'vitest';
import { sendHead } from '../../src/aws/s3-head.ts';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import { openClients } from '../support/servers/aws-clients.ts';
import { startScripted, type ScriptedAnswer } from '../support/servers/scripted.ts';
import { signatureMistake } from '../support/sigv4.ts';

const signer = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalr/EXAMPLE+KEY',
  region: 'eu-west-1',
  service: 's3',
  sessionToken: 'session',
};

async function startS3(answer: (attempt: number) => ScriptedAnswer) {
  let attempts = 0;
  const { url, asked } = await startScripted(() => {
    const { headers, ...answered } = answer((attempts += 1));
    return { ...answered, headers: { 'x-amz-request-id': 'TESTREQUEST00001', ...headers } };
  });
  const aws = openClients({ region: signer.region, endpoints: { s3: url }, credentials: signer });
  return { seen: asked, client: aws.s3For(signer.region) };
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

it.each([
  [500, 2],
  [503, 2],
  [429, 2],
  [400, 1],
  [403, 1],
  [404, 1],
  [412, 1],
])('a HEAD that is answered with %d fails with the error of the SDK, after %d requests', async (status, times) => {
  const { seen, client } = await startS3(() => ({ status }));
  const input = { Bucket: 'some-bucket', Key: 'k' };
  const faultOf = (request: Promise<unknown>) => request.then(null, ({ name, message }: Error) => ({ name, message }));
  const own = await faultOf(sendHead(client, input, { attempt }));
  expect(seen).toHaveLength(times);
  expect(own).toEqual(await faultOf(client.send(new HeadObjectCommand(input))));
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
  await expect(storage.readState(target, 'k', stop.signal)).rejects.toThrow('stopped');
  expect(isOver).toBe(false);
  expect(seen).toHaveLength(1);
  expect(wait.mock.calls[0]?.[1].retryAfterHint?.getTime()).toBeGreaterThan(Date.now());
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
