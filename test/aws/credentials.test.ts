/**
 * Credentials as real accounts obtain them: real shared files, real credential processes, and an STS and a metadata service
 * of this test. The SDK does the work; what is shown is who is asked, in which region, for how
 * long, and what the fault says.
 */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AwsClients } from '../../src/aws/clients.ts';
import { createCredentials, type CredentialsProvider } from '../../src/aws/credentials.ts';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import { createSqsClient } from '../../src/aws/sqs-client.ts';
import { faultOf, type Fault } from '../../src/base/fault.ts';
import { openClients } from '../support/servers/aws-clients.ts';
import { startScripted, type ScriptedAnswer, type ScriptedRequest } from '../support/servers/scripted.ts';

interface Seen {
  /** Access key, region and service of the signature; undefined for a request that is not signed. */
  readonly signedBy: string | undefined;
  readonly token: string | undefined;
  readonly body: string;
}

const clock = { monotonicMs: () => performance.now() };
const bucket = { bucket: 'photos', region: 'eu-west-1' };
/** Of what hangs; long enough for a shell to begin beside other tests. */
const LIMIT_MS = 3_000;

const PATIENCE = { timeout: 60_000, interval: 500 };

const roleXml = (action: string, key: string) => `<${action}Response><${action}Result><Credentials>
  <AccessKeyId>${key}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token-of-${key}</SessionToken>
  <Expiration>${new Date(Date.now() + 3_600_000).toISOString()}</Expiration></Credentials></${action}Result></${action}Response>`;

describe('the credentials', () => {
  let folder: string;
  let url: string;
  let seen: Seen[];
  let answer: (request: Seen) => ScriptedAnswer;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tally-credentials-'));
    seen = [];
    answer = answerAsAws;
    ({ url } = await startScripted((request) => {
      const asked = seenOf(request);
      seen.push(asked);
      return answer(asked);
    }));
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_PROFILE', 'AWS_REGION'])
      vi.stubEnv(name, undefined);
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'none'));
    vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'));
    vi.stubEnv('AWS_ENDPOINT_URL_STS', url);
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  });

  /** A role is named by its key, so that requests say by whom they are signed. */
  function answerAsAws({ body, signedBy }: Seen): ScriptedAnswer {
    const form = new URLSearchParams(body);
    const action = form.get('Action');
    if (action !== null) return { body: roleXml(action, form.get('RoleArn')!.split('/').at(-1)!) };
    return { headers: { 'x-amz-request-id': 'request-1' }, body: signedBy?.endsWith('/sqs') ? '{}' : '' };
  }

  async function configure(text: string): Promise<void> {
    await writeFile(join(folder, 'config'), text);
  }

  const chain = (limitMs = 60_000): CredentialsProvider =>
    createCredentials({ region: 'eu-central-1', requestHandler: { requestTimeout: 60_000 }, limitMs });

  const clientsWith = (credentials: Parameters<typeof openClients>[0]['credentials']): AwsClients =>
    openClients({ region: 'eu-central-1', endpoints: { sqs: url, s3: url }, credentials });

  const storageOf = (clients: AwsClients) => createS3Storage({ clientFor: clients.s3For, region: 'eu-central-1', clock });
  const queuesOf = (clients: AwsClients) => createSqsClient({ clientFor: clients.sqsFor, clock });
  const queueUrl = (): string => `${url}/123456789012/events`;
  const thrown = (work: Promise<unknown>): Promise<Fault> => work.then(() => expect.fail('nothing was thrown'), faultOf);

  /** The requests to S3, SQS and STS that one HEAD request and one delete need. */
  async function askedWith(clients: AwsClients): Promise<readonly string[]> {
    await storageOf(clients).regionOf('photos');
    await queuesOf(clients).deleteBatch(queueUrl(), ['r']);
    return seen.map(({ signedBy = 'unsigned', token }) => [signedBy, ...(token === undefined ? [] : [token])].join(' '));
  }

  async function webIdentity(): Promise<void> {
    await writeFile(join(folder, 'token'), 'identity');
    vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', join(folder, 'token'));
    vi.stubEnv('AWS_ROLE_ARN', 'arn:aws-cn:iam::123456789012:role/POD');
  }

  it('are those of a web identity, as a pod has it', async () => {
    await webIdentity();
    expect(await askedWith(clientsWith(chain()))).toEqual([
      'unsigned',
      'POD/eu-central-1/s3 token-of-POD',
      'POD/eu-central-1/sqs token-of-POD',
    ]);
    expect(new URLSearchParams(seen[0]!.body).get('WebIdentityToken')).toBe('identity');
  });

  /** A profile with a credential process: a script of the test, with an argument that nobody may see. */
  async function configureProcess(script: string): Promise<void> {
    const path = join(folder, 'process.sh');
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o700);
    await configure(`[profile daemon]\ncredential_process = ${path} --password hunter2\n`);
    vi.stubEnv('AWS_PROFILE', 'daemon');
  }

  it('of a credential process that never answers are a fault; when it has ended, the next one is asked', async () => {
    const keys = join(folder, 'keys.json');
    await configureProcess(`echo $$ >> ${join(folder, 'pids')}\nif [ -e ${keys} ]; then cat ${keys}; else exec sleep 600; fi`);
    const clients = clientsWith(chain(LIMIT_MS));
    const reading = thrown(storageOf(clients).readState(bucket, 'a'));
    const deleting = thrown(queuesOf(clients).deleteBatch(queueUrl(), ['r']));
    // a neighbour with credentials is served meanwhile
    const neighbour = clientsWith({ accessKeyId: 'NEIGHBOUR', secretAccessKey: 'secret' });
    expect(await askedWith(neighbour)).toEqual(['NEIGHBOUR/eu-central-1/s3', 'NEIGHBOUR/eu-central-1/sqs']);

    const hung = `no credentials: the chain gave no answer within ${LIMIT_MS} ms`;
    expect(await reading).toEqual({ code: 's3.credentials', reason: expect.stringContaining(hung) });
    expect(await deleting).toEqual({
      code: 'queue.unreachable',
      reason: expect.stringMatching(new RegExp(`the AWS credentials are missing or not accepted .*${hung}`)),
    });
    // and no second one is started beside it
    expect(await thrown(storageOf(clients).readState(bucket, 'b'))).toMatchObject({ code: 's3.credentials' });
    const pids = await readFile(join(folder, 'pids'), 'utf8');
    expect(pids).toMatch(/^\d+\n$/);

    const Expiration = new Date(Date.now() + 3_600_000).toISOString();
    const found = { AccessKeyId: 'PROCESS', SecretAccessKey: 'secret', SessionToken: 'token-of-PROCESS', Expiration };
    await writeFile(keys, JSON.stringify({ Version: 1, ...found }));
    process.kill(Number(pids));
    await vi.waitFor(async () => {
      seen = [];
      expect((await askedWith(clients))[0]).toBe('PROCESS/eu-central-1/s3 token-of-PROCESS');
    }, PATIENCE);
  });

  it('of a credential process that fails are a fault with its own words, without its arguments', async () => {
    await configureProcess('echo "sign in first" >&2\nexit 3');
    const fault = await thrown(storageOf(clientsWith(chain())).readState(bucket, 'a'));
    expect(fault).toEqual({
      code: 's3.credentials',
      reason: expect.stringContaining('the credential_process failed: sign in first'),
    });
    expect(fault.reason).not.toContain('hunter2');
  });

  const ofSts = (request: Seen): boolean => request.body.includes('Action=AssumeRole');

  it.each<[what: string, answer: ScriptedAnswer, words: RegExp]>([
    [
      'refuses',
      {
        status: 403,
        body: '<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>',
      },
      /Not authorized to perform sts:AssumeRoleWithWebIdentity/,
    ],
    ['is another server', { body: '<html><body>Sign in</body></html>' }, /no credentials: /],
  ])('of an STS that %s are a fault with its words', async (_, answered, words) => {
    await webIdentity();
    answer = (request) => (ofSts(request) ? answered : answerAsAws(request));
    const clients = clientsWith(chain());
    expect(await thrown(storageOf(clients).readState(bucket, 'a'))).toEqual({
      code: 's3.credentials',
      reason: expect.stringMatching(words),
    });
    expect(await thrown(queuesOf(clients).deleteBatch(queueUrl(), ['r']))).toEqual({
      code: 'queue.unreachable',
      reason: expect.stringMatching(/the AWS credentials are missing or not accepted/),
    });
    // nothing was sent without credentials
    expect(seen.filter((request) => !ofSts(request))).toEqual([]);
  });

  it('that nothing has are a fault with what each link lacked', async () => {
    vi.stubEnv('AWS_PROFILE', 'mistyped');
    const { code, reason } = await thrown(storageOf(clientsWith(chain())).readState(bucket, 'a'));
    expect(code).toBe('s3.credentials');
    expect(reason).toMatch(/\[?mistyped\]?/);
    expect(reason).not.toMatch(/kipping/);
  });
});

function seenOf({ headers, body }: ScriptedRequest): Seen {
  const signedBy = /Credential=([^/]+)\/\d+\/([^/]+\/[^/]+)\//.exec(headers.authorization ?? '');
  const token = headers['x-amz-security-token'];
  return { signedBy: signedBy?.slice(1, 3).join('/'), token: Array.isArray(token) ? token[0] : token, body };
}
