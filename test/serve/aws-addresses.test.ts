/** The region and the endpoints that a process uses, from variables, a profile of real shared files, and the queue's URL. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { awsAddresses, type AwsAddresses } from '../../src/serve/core.ts';
import { awsEnvironment } from '../../src/settings/environment.ts';
import { parseSettings } from '../../src/settings/settings.ts';

const config = `
[default]
region = eu-west-1
[profile gov]
region = us-gov-west-1
endpoint_url = http://all.internal
[profile services]
services = own
endpoint_url = http://all.internal
[services own]
s3 =
  endpoint_url = http://store.internal
sqs =
  endpoint_url = http://queues.internal
[profile ignoring]
endpoint_url = http://all.internal
ignore_configured_endpoint_urls = true
[profile broken]
services = missing
[profile bare]
`;
const credentials = `
[elsewhere]
region = ap-south-1
`;
const NONE = { sqs: undefined, sns: undefined, s3: undefined };
const all = (url: string) => ({ sqs: url, sns: url, s3: url });
const queue = 'https://sqs.cn-north-1.amazonaws.com.cn/123456789012/events';

describe('the addresses of AWS', () => {
  let folder: string;

  beforeEach(async () => {
    // another path each time, because the SDK remembers what it read
    folder = await mkdtemp(join(tmpdir(), 'tally-addresses-'));
    await writeFile(join(folder, 'config'), config);
    await writeFile(join(folder, 'credentials'), credentials);
    vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'));
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'credentials'));
    for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3']) vi.stubEnv(name, undefined);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  });

  async function addressesOf(env: Readonly<Record<string, string>>, ownEndpoint?: string): Promise<AwsAddresses> {
    vi.stubEnv('AWS_PROFILE', env['AWS_PROFILE']);
    const parsed = parseSettings(env, () => expect.fail('no setting names a file'));
    if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
    return awsAddresses(parsed.settings, awsEnvironment(env), ownEndpoint);
  }

  it.each<[what: string, env: Readonly<Record<string, string>>, region: string]>([
    ['the variable', { AWS_REGION: 'eu-north-1', AWS_DEFAULT_REGION: 'eu-south-1', AWS_PROFILE: 'gov' }, 'eu-north-1'],
    ['the variable of the AWS CLI', { AWS_DEFAULT_REGION: 'eu-south-1', AWS_PROFILE: 'gov' }, 'eu-south-1'],
    ['the same, where the other one is empty', { AWS_REGION: '', AWS_DEFAULT_REGION: 'eu-south-1' }, 'eu-south-1'],
    ['the profile', { AWS_PROFILE: 'gov', TALLY_QUEUE_URL: queue }, 'us-gov-west-1'],
    ['the profile in the credentials file', { AWS_PROFILE: 'elsewhere' }, 'ap-south-1'],
    ['the default profile', { TALLY_QUEUE_URL: queue }, 'eu-west-1'],
    ['the queue’s URL', { AWS_PROFILE: 'bare', TALLY_QUEUE_URL: queue }, 'cn-north-1'],
    ['the queue’s URL where the profile does not exist', { AWS_PROFILE: 'mistyped', TALLY_QUEUE_URL: queue }, 'cn-north-1'],
    ['nothing', { AWS_PROFILE: 'bare', TALLY_QUEUE_URL: 'http://queues.internal/1/events' }, 'us-east-1'],
  ])('have the region of %s', async (_, env, region) => {
    expect((await addressesOf(env)).region).toBe(region);
  });

  it.each<[what: string, env: Readonly<Record<string, string>>, endpoints: AwsAddresses['endpoints'], forcePathStyle: boolean]>([
    ['AWS', {}, NONE, false],
    ['AWS, where the variable is empty', { AWS_ENDPOINT_URL: '' }, NONE, false],
    ['the profile', { AWS_PROFILE: 'gov' }, all('http://all.internal'), true],
    [
      'the services of the profile',
      { AWS_PROFILE: 'services' },
      { sqs: 'http://queues.internal', sns: 'http://all.internal', s3: 'http://store.internal' },
      true,
    ],
    ['the variable, not those of the profile', { AWS_PROFILE: 'services', AWS_ENDPOINT_URL: 'http://var' }, all('http://var'), true],
    [
      'the variable of one service, and of the profile for the others',
      { AWS_PROFILE: 'gov', AWS_ENDPOINT_URL_S3: 'http://minio' },
      { ...all('http://all.internal'), s3: 'http://minio' },
      true,
    ],
    [
      'AWS where the variable ignores all',
      { AWS_PROFILE: 'gov', AWS_ENDPOINT_URL: 'http://var', AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' },
      {},
      false,
    ],
    ['AWS where the profile ignores all', { AWS_PROFILE: 'ignoring', AWS_ENDPOINT_URL: 'http://var' }, {}, false],
    [
      'the profile that ignores all where the variable does not',
      { AWS_PROFILE: 'ignoring', AWS_ENDPOINT_URL: 'http://var', AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'false' },
      all('http://var'),
      true,
    ],
    ['AWS where the profile’s services are missing, which the SDK reports', { AWS_PROFILE: 'broken' }, NONE, false],
  ])('have the endpoints of %s', async (_, env, endpoints, forcePathStyle) => {
    expect(await addressesOf(env)).toMatchObject({ endpoints, forcePathStyle });
  });

  it.each<[what: string, env: Readonly<Record<string, string>>, server: string | undefined]>([
    ['the host of a queue', { TALLY_QUEUE_URL: 'http://elasticmq:9324/000000000000/q' }, 'http://elasticmq:9324'],
    ['the endpoint of SQS', { AWS_ENDPOINT_URL_SQS: 'http://elasticmq:9324' }, 'http://elasticmq:9324'],
    ['the same, with a store', { AWS_ENDPOINT_URL_SQS: 'http://queues', AWS_ENDPOINT_URL_S3: 'http://store' }, 'http://queues'],
    ['a host with SNS', { TALLY_QUEUE_URL: 'http://localstack/1/q', AWS_ENDPOINT_URL_SNS: 'http://localstack' }, undefined],
    ['an emulator of all', { TALLY_QUEUE_URL: 'http://localstack/1/q', AWS_ENDPOINT_URL: 'http://localstack' }, undefined],
    ['AWS', { TALLY_QUEUE_URL: queue }, undefined],
    ['a VPC endpoint', { AWS_ENDPOINT_URL_SQS: 'https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com' }, undefined],
    ['no queue', {}, undefined],
  ])('tell a server of queues alone by %s', async (_, env, server) => {
    const { hasQueuesAlone, endpoints } = await addressesOf({ AWS_PROFILE: 'bare', ...env });
    expect(hasQueuesAlone).toBe(server !== undefined);
    if (server !== undefined) expect(endpoints).toMatchObject({ sqs: server, sns: undefined });
  });

  it('of the embedded mode read no profile', async () => {
    const endpoint = 'http://127.0.0.1:4566';
    expect(await addressesOf({ AWS_PROFILE: 'gov' }, endpoint)).toMatchObject({ region: 'us-east-1', endpoints: all(endpoint) });
    expect(await addressesOf({ AWS_REGION: 'eu-north-1' }, endpoint)).toMatchObject({ region: 'eu-north-1' });
  });
});
