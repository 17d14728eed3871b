/** The blocks of docs/start/aws.md are run on LocalStack, one after the other, as a reader types them in two terminals. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { AWS_CLI } from '../support/servers/aws-cli.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import { startDaemon } from '../support/servers/daemon.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { openPageShell } from './page-shell.ts';
import { fencesOf, textOf } from './pages.ts';
import { canRun } from './programs.ts';

const PAGE = 'docs/start/aws.md';
const TEST_TIMEOUT_MS = 600_000;
const runs = canRun(`the blocks of ${PAGE}`, [AWS_CLI]);

const blocks = fencesOf(textOf(PAGE))
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text);

const folder = mkdtempSync(join(tmpdir(), 'tally-start-aws-'));
afterAll(() => rmSync(folder, { recursive: true }));

it.skipIf(awsEndpoint() === undefined || !runs)(
  `${PAGE}: queues, a bucket, a search, and nothing is left`,
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const [permissions = '', look = '', make = '', serve = '', plan = '', add = '', search = '', remove = '', clean = '', ...rest] = blocks;
    expect(rest).toEqual([]);
    const aws = createTestAws(awsEndpoint()!);
    const shell = await openPageShell(aws.endpoint);
    const bucket = await aws.createBucket();
    const index = `sqlite:${join(folder, 'index.db')}`;
    /** The names of the page are those of the test. */
    const typed = (block: string): string =>
      block
        .replaceAll('eu-central-1', aws.region)
        .replaceAll('photos', bucket)
        .replaceAll('sqlite:index.db', index)
        .replaceAll('rm index.db', `rm ${join(folder, 'index.db')}`)
        .replaceAll('tally queue create', `tally queue create --prefix ${shell.prefix}`);
    const run = (block: string, env?: Readonly<Record<string, string>>): Promise<string> =>
      shell.runBlock(typed(block), { TALLY_INDEX_URL: index, ...env }, env);

    expect(await run(permissions)).toContain('sqs:CreateQueue');
    expect(await run(look)).toContain(`+ queue arn:aws:sqs:${aws.region}:000000000000:${shell.prefix}-bucket-events`);
    // a plan makes nothing
    expect(await run(look)).toContain('+ queue');
    const exported = await run(`${make}env | grep ^TALLY_`);
    const settings = Object.fromEntries([...exported.matchAll(/^(TALLY_\w+)=(.+)$/gm)].map(([, name = '', value = '']) => [name, value]));
    expect(Object.keys(settings).toSorted()).toEqual(['TALLY_DEAD_LETTER_QUEUE_URL', 'TALLY_QUEUE_URL']);

    expect(serve).toBe('export TALLY_INDEX_URL=sqlite:index.db\ntally serve\n');
    const daemon = await startDaemon({ ...settings, AWS_REGION: aws.region, TALLY_INDEX_URL: index, AWS_ENDPOINT_URL: aws.endpoint });
    // the second terminal
    const env = { TALLY_REGISTRY_URL: daemon.controlUrl };
    expect(await run(plan, env)).toContain('+ notification');
    await run(add, env);
    await daemon.ready();
    const [put = '', explain = '', find = ''] = search.split('\n');
    await run(put);
    const isFound = async (): Promise<boolean> =>
      JSON.stringify((await daemon.request('GET', `/v1/objects?bucket=${bucket}`)).body).includes('tally-was-here.txt');
    await until('the object is found', isFound);
    expect(await run(explain, env)).toMatch(/^A search finds it/m);
    expect(await run(find, env)).toContain('tally-was-here.txt');
    await run(remove, env);
    await daemon.stop();
    await run(clean, settings);
    for (const url of [settings['TALLY_QUEUE_URL'], settings['TALLY_DEAD_LETTER_QUEUE_URL']])
      await expect(shell.aws('sqs', 'get-queue-attributes', '--queue-url', url ?? '')).rejects.toThrow(/NonExistentQueue|does not exist/);
    expect(await shell.aws('s3api', 'get-bucket-notification-configuration', '--bucket', bucket)).not.toContain('tally-');
    await shell.dispose();
    await aws.dispose();
  },
);
