/** Amazon OpenSearch Service, as far as its door: a proxy that checks every signature before the real OpenSearch. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { chainCredentials } from '../../../src/aws/clients.ts';
import { awsEnvironment } from '../../../src/settings/environment.ts';
import { parseSettings } from '../../../src/settings/settings.ts';
import { awsAddresses, createCore, queuesOf } from '../../../src/serve/core.ts';
import { storeTour } from '../../contracts/store-tour.ts';
import { openTestStore, raw, startProxy, type Proxy, type ProxiedRequest } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { signatureMistake } from '../../support/sigv4.ts';
import { signingRegion } from '../../../src/store/opensearch/client.ts';

const signer = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'session/of+the==role',
  region: 'eu-central-1',
  service: 'es',
};

function stubCredentials(secretAccessKey = signer.secretAccessKey): void {
  vi.stubEnv('AWS_ACCESS_KEY_ID', signer.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretAccessKey);
  vi.stubEnv('AWS_SESSION_TOKEN', signer.sessionToken);
}

describe.skipIf(opensearchUrl() === undefined)('signed requests', () => {
  let proxy: Proxy;
  let onTheWay = (request: ProxiedRequest): ProxiedRequest => request;
  const mistakes: string[] = [];

  beforeAll(async () => {
    stubCredentials();
    proxy = await startProxy((request, forward) => {
      const mistake = signatureMistake(onTheWay(request), signer);
      if (mistake === undefined) return forward();
      mistakes.push(mistake);
      // as Amazon OpenSearch Service words it
      return { status: 403, body: JSON.stringify({ message: `The request signature we calculated does not match: ${mistake}` }) };
    });
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await proxy?.close();
  });
  afterEach(() => {
    onTheWay = (request) => request;
    stubCredentials();
    mistakes.length = 0;
  });

  storeTour('the OpenSearch store through signed requests', async () =>
    openTestStore(
      { urls: [proxy.url], signing: { region: signer.region, credentials: chainCredentials({ region: signer.region }) } },
      (method, path, body) => raw(method, path, body),
    ),
  );

  async function listJobs(env: Readonly<Record<string, string>> = {}): Promise<unknown> {
    const settings = { TALLY_INDEX_URL: proxy.url, TALLY_INDEX_AUTH: 'sigv4', AWS_REGION: signer.region, ...env };
    const parsed = parseSettings(settings, () => expect.fail('no setting names a file'));
    if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
    const addresses = await awsAddresses(parsed.settings, awsEnvironment(settings), undefined);
    const core = await createCore(parsed.settings, addresses, queuesOf(parsed.settings), createFakeTelemetry());
    try {
      return await core.operations.listJobs(
        { query: { limit: 10 } },
        { actor: { kind: 'local', user: 'test', host: 'here' }, signal: new AbortController().signal },
      );
    } finally {
      await core.close();
    }
  }

  it('are what TALLY_INDEX_AUTH=sigv4 sends, and nothing else does', async () => {
    // behind the door: this prefix was never prepared
    await expect(listJobs({ TALLY_INDEX_PREFIX: 'never-prepared' })).rejects.toMatchObject({ code: 'index.state-missing' });
    await expect(listJobs({ TALLY_INDEX_AUTH: 'none' })).rejects.toMatchObject({ code: 'index.denied' });
    expect(mistakes).toEqual(['not signed']);
  });

  it('wait for credentials: index.denied where the AWS SDK finds none', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', '');
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    const asked = proxy.requests.length;
    await expect(listJobs()).rejects.toMatchObject({ code: 'index.denied', message: expect.stringContaining('redentials') });
    expect(proxy.requests).toHaveLength(asked);
  });
});

describe('the region that requests are signed for', () => {
  it.each([
    ['search-tally-1a2b3c.eu-west-1.es.amazonaws.com', 'eu-west-1'],
    ['vpc-tally-1a2b3c.cn-north-1.es.amazonaws.com.cn', 'cn-north-1'],
    ['search-tally-1a2b3c.aos.us-gov-west-1.on.aws', 'us-gov-west-1'],
    ['search.example.com', 'eu-central-1'],
    ['tally.eu-west-1.es.amazonaws.com.example.com', 'eu-central-1'],
  ])('at %s is %s', (host, region) => {
    expect(signingRegion(['other.example.com', host], 'eu-central-1')).toBe(region);
  });
});
