/** Requests of each client through a proxy: a real one on this machine, in front of hosts that exist for it only. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { chainCredentials } from '../../src/aws/clients.ts';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import { createOpenSearchClient } from '../../src/store/opensearch/client.ts';
import { faultOf, type Fault } from '../../src/base/fault.ts';
import { parseProxy } from '../../src/settings/environment.ts';
import { openClients } from '../support/servers/aws-clients.ts';
import { startRecordingProxy, type RecordingProxy } from '../support/servers/recording-proxy.ts';

const clock = { monotonicMs: () => performance.now() };
const DOMAIN = 'search-tally-1a2b3c.eu-west-1.es.amazonaws.com';
const hosts = [DOMAIN, 'photos.s3.eu-west-1.amazonaws.com', 'sts.eu-west-1.amazonaws.com', 'search.internal', 'other.internal'];
const bucket = { bucket: 'photos', region: 'eu-west-1' };

describe('through a proxy', () => {
  let proxy: RecordingProxy;

  beforeAll(async () => {
    proxy = await startRecordingProxy(hosts);
  });
  afterAll(() => proxy.close());
  beforeEach(() => {
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    proxy.answer = () => ({});
    proxy.tunnel = 'open';
    for (const list of [proxy.asked, proxy.tunnels, proxy.authorizations]) list.length = 0;
  });
  afterEach(() => vi.unstubAllEnvs());

  function proxyOf(environment: Readonly<Record<string, string>>) {
    const parsed = parseProxy(environment);
    return parsed.ok ? parsed.proxy : expect.fail(parsed.mistakes.join());
  }

  function storageWith(
    proxyEnv: ReturnType<typeof proxyOf>,
    { endpoint, timeoutMs = 30_000 }: { endpoint?: string; timeoutMs?: number } = {},
  ) {
    const clients = openClients({
      region: 'eu-west-1',
      endpoints: { s3: endpoint },
      credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
      proxyEnv,
      s3: { forcePathStyle: endpoint !== undefined, timeoutMs },
    });
    return createS3Storage({ clientFor: clients.s3For, region: 'eu-west-1', clock });
  }

  const thrown = (work: Promise<unknown>): Promise<Fault> => work.then(() => expect.fail('nothing was thrown'), faultOf);

  it('AWS is reached in a tunnel, with the user and password of the proxy', async () => {
    const { port } = new URL(proxy.url);
    const storage = storageWith(proxyOf({ HTTPS_PROXY: `http://user:p%40ss@127.0.0.1:${port}` }));
    expect(await storage.readState(bucket, 'a')).toMatchObject({ state: { present: true } });
    expect(proxy.tunnels).toEqual(['photos.s3.eu-west-1.amazonaws.com:443']);
    expect(proxy.authorizations).toEqual([`Basic ${Buffer.from('user:p@ss').toString('base64')}`]);
    // they are for the proxy alone
    expect(proxy.asked.map(({ headers }) => headers['proxy-authorization'])).toEqual([undefined]);
  });

  it('STS is reached as well', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tally-proxy-'));
    await writeFile(join(folder, 'token'), 'identity');
    for (const [name, value] of Object.entries({
      AWS_PROFILE: undefined,
      AWS_ACCESS_KEY_ID: undefined,
      AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, 'token'),
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/POD',
    }))
      vi.stubEnv(name, value);
    proxy.answer = () => ({
      body: `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>POD</AccessKeyId>
        <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
        </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
    });
    const credentials = chainCredentials({ region: 'eu-west-1', proxyEnv: proxyOf({ HTTPS_PROXY: proxy.url }) });
    expect(await credentials()).toMatchObject({ accessKeyId: 'POD' });
    expect(proxy.tunnels).toEqual(['sts.eu-west-1.amazonaws.com:443']);
    await rm(folder, { recursive: true });
  });

  it('OpenSearch is reached: in a tunnel by https, by name otherwise', async () => {
    proxy.answer = () => ({ headers: { 'content-type': 'application/json' }, body: '{"name":"node"}' });
    const proxyEnv = proxyOf({ HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url });
    for (const url of ['https://search.internal', 'http://search.internal:9200']) {
      const client = createOpenSearchClient({ urls: [url], requestTimeoutMs: 10_000, proxyEnv });
      expect(await client.send({ method: 'GET', path: '/' })).toEqual({ status: 200, body: { name: 'node' } });
      await client.close();
    }
    expect(proxy.tunnels).toEqual(['search.internal:443']);
    expect(proxy.asked.map(({ url }) => url)).toEqual(['https://search.internal/', 'http://search.internal:9200/']);
  });

  it('nothing is reached that NO_PROXY names, nor anything of this machine', async () => {
    const direct = createServer((_, outgoing) => outgoing.setHeader('content-type', 'application/json').end('{}')).listen(0, '127.0.0.1');
    await once(direct, 'listening');
    const { port } = direct.address() as AddressInfo;
    const proxyEnv = proxyOf({ HTTP_PROXY: proxy.url, NO_PROXY: '.localtest.invalid' });
    for (const host of ['127.0.0.1', 'localhost']) {
      const client = createOpenSearchClient({ urls: [`http://${host}:${port}`], requestTimeoutMs: 10_000, proxyEnv });
      expect(await client.send({ method: 'GET', path: '/' })).toMatchObject({ status: 200 });
      await client.close();
    }
    // a name that cannot be resolved, so that a request past the proxy fails
    const named = createOpenSearchClient({ urls: ['http://search.localtest.invalid'], requestTimeoutMs: 10_000, proxyEnv });
    expect(await thrown(named.send({ method: 'GET', path: '/' }))).toMatchObject({ code: 'index.unreachable' });
    await named.close();
    expect(proxy.asked).toEqual([]);
    direct.close();
  });

  it('that never opens its tunnel a request ends by its time-out, while another one is answered', async () => {
    proxy.tunnel = 'none';
    const storage = storageWith(proxyOf({ HTTPS_PROXY: proxy.url }), { timeoutMs: 1_000 });
    const neighbour = storageWith(proxyOf({ HTTP_PROXY: proxy.url }), { endpoint: 'http://minio.internal' });
    const hanging = thrown(storage.readState(bucket, 'a'));
    expect(await neighbour.readState(bucket, 'a')).toMatchObject({ state: { present: true } });
    expect(await hanging).toMatchObject({ code: 's3.unavailable' });
  });

  it('that refuses a tunnel a request is a fault that says so, and another node of the cluster is tried', async () => {
    proxy.tunnel = 'refused';
    const proxyEnv = proxyOf({ HTTPS_PROXY: proxy.url.replace('//', '//user:hunter2@') });
    const storage = storageWith(proxyEnv);
    const urls = ['https://search.internal', 'https://other.internal'];
    const client = createOpenSearchClient({ urls, requestTimeoutMs: 10_000, proxyEnv });
    const faults = [await thrown(storage.readState(bucket, 'a')), await thrown(client.send({ method: 'GET', path: '/' }))];
    await client.close();
    expect(faults).toEqual([
      { code: 's3.unavailable', reason: expect.stringMatching(/tunnel.*403/s) },
      { code: 'index.unreachable', reason: expect.stringMatching(/tunnel.*403/s) },
    ]);
    expect(JSON.stringify(faults)).not.toContain('hunter2');
    expect(proxy.tunnels).toEqual(expect.arrayContaining(['search.internal:443', 'other.internal:443']));
  });
});
