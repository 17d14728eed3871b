/** The blocks of docs/start/aws.md are run on LocalStack, one after the other, as a reader types them in two terminals. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createTestAws, until } from '../support/servers/aws.ts';
import { startDaemon } from '../support/servers/daemon.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { MAIN } from '../support/servers/program.ts';
import { fencesOf, textOf } from './pages.ts';
import { canRun, findProgram, runProgram } from './programs.ts';

const PAGE = 'docs/start/aws.md';
const AWS_CLI = { name: 'aws', variable: 'TALLY_TEST_AWS_CLI' } as const;
const TEST_TIMEOUT_MS = 600_000;
const runs = canRun(`the blocks of ${PAGE}`, [AWS_CLI]);

const blocks = fencesOf(textOf(PAGE))
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text);

const folder = mkdtempSync(join(tmpdir(), 'tally-start-aws-'));
afterAll(() => rmSync(folder, { recursive: true }));

type Values = Readonly<Record<string, string>>;

/** Runs lines in the folder as a reader pastes them, with Tally and the AWS CLI on the PATH, and returns what they printed. Throws when a line fails. */
async function bash(text: string, env: Values): Promise<string> {
  const { code, stdout, stderr } = await runProgram('/bin/bash', ['-euo', 'pipefail', '-c', text], { env, cwd: folder });
  if (code !== 0) throw new Error(`ended with ${String(code)}: ${stderr}\n${stdout}\n${text}`);
  return stdout;
}

it.skipIf(awsEndpoint() === undefined || !runs)(
  `${PAGE}: queues, a bucket, a search, and nothing is left`,
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const [permissions = '', look = '', make = '', serve = '', plan = '', add = '', search = '', remove = '', clean = '', ...rest] = blocks;
    expect(rest).toEqual([]);
    const aws = createTestAws(awsEndpoint()!);
    const bucket = await aws.createBucket();
    const queueName = `tally-test-${randomBytes(4).toString('hex')}-bucket-events`;
    symlinkSync(MAIN, join(folder, 'tally'));
    // version 1 of the AWS CLI, which PyPI has, sends SQS's requests to AWS whatever AWS_ENDPOINT_URL says, unless it is an option
    const script = `#!/bin/sh\nexec '${findProgram(AWS_CLI) ?? ''}' --endpoint-url '${aws.endpoint}' "$@"\n`;
    writeFileSync(join(folder, 'aws'), script, { mode: 0o755 });
    const { HOME = '', PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
    const own = {
      HOME,
      NODE_COMPILE_CACHE,
      PATH: [folder, PATH].join(delimiter),
      AWS_ENDPOINT_URL: aws.endpoint,
      // version 1 of the AWS CLI reads this variable only
      AWS_DEFAULT_REGION: aws.region,
      AWS_REGION: aws.region,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_PAGER: '',
    };
    /** Runs a block; the names and addresses of the page are those of the test. */
    const run = (block: string, env: Values = {}): Promise<string> => {
      const typed = block
        .replaceAll('eu-central-1', aws.region)
        .replaceAll('photos', bucket)
        .replaceAll('http://127.0.0.1:8080', env['TALLY_REGISTRY_URL'] ?? '')
        .replaceAll('tally setup', `TALLY_QUEUE_URL=${aws.endpoint}/000000000000/${queueName} tally setup`);
      return bash(typed, { ...own, ...env });
    };

    expect(await run(permissions)).toContain('sqs:CreateQueue');
    expect(await run(look)).toContain(`+ queue arn:aws:sqs:${aws.region}:000000000000:${queueName}`);
    // a plan makes nothing
    expect(await run(look)).toContain('+ queue');
    const exported = await run(`${make}env | grep ^TALLY_`);
    const settings = Object.fromEntries([...exported.matchAll(/^(TALLY_\w+)=(.+)$/gm)].map(([, name = '', value = '']) => [name, value]));
    expect(Object.keys(settings).toSorted()).toEqual(['TALLY_DEAD_LETTER_QUEUE_URL', 'TALLY_QUEUE_URL']);

    expect(serve).toBe('export TALLY_INDEX_URL=sqlite:index.db\ntally serve\n');
    const daemon = await startDaemon({
      ...settings,
      AWS_REGION: aws.region,
      TALLY_INDEX_URL: `sqlite:${join(folder, 'index.db')}`,
      AWS_ENDPOINT_URL: aws.endpoint,
    });
    // the second terminal
    const env = { TALLY_REGISTRY_URL: daemon.controlUrl };
    expect(await run(plan, env)).toContain('+ notification');
    await run(add, env);
    expect(await run('tally jobs', env)).toContain(bucket);
    await daemon.ready();
    const [put = '', explain = '', find = ''] = search.split('\n');
    await run(put);
    const isFound = async (): Promise<boolean> =>
      JSON.stringify((await daemon.request('GET', `/v1/objects?bucket=${bucket}`)).body).includes('tally-was-here.txt');
    await until('the object is found', isFound);
    expect(await run(explain, env)).toMatch(/^A search finds it/m);
    expect(await run(find, env)).toContain('tally-was-here.txt');
    expect(await run('tally doctor photos', env)).toContain(`${bucket}: ok`);
    await run(remove, env);
    await daemon.stop();
    await run(clean, settings);
    for (const url of [settings['TALLY_QUEUE_URL'], settings['TALLY_DEAD_LETTER_QUEUE_URL']])
      await expect(run(`aws sqs get-queue-attributes --queue-url '${url}'`)).rejects.toThrow(/NonExistentQueue|does not exist/);
    expect(await run('aws s3api get-bucket-notification-configuration --bucket photos')).not.toContain('tally-');
    await aws.dispose();
  },
);
