import packageJson from '../../package.json' with { type: 'json' };
import { describe, expect, it } from 'vitest';
import { SettingsError } from '../../src/cli/errors.ts';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createFakeControl } from '../support/fakes/control.ts';
import { job } from '../support/fakes/control.ts';
import { fencesOf, textOf } from '../docs/pages.ts';
import { createCliWorld } from './world.ts';

describe('help', () => {
  // the page is what the program prints: docs/generated.test.ts
  it('of every command fits into 80 columns and shows an example', () => {
    const helps = fencesOf(textOf('docs/reference/cli.md')).map(({ text }) => text);
    expect(helps.filter((help) => !/\nExamples?:\n {2}.*tally /.test(help))).toEqual([]);
    expect(helps.flatMap((help) => help.split('\n')).filter((line) => line.length > 80)).toEqual([]);
    expect(helps.length).toBeGreaterThan(50);
  });

  it.each([[[]], [['bucket']], [['dead-letters']]])('is the answer to no command at all (%j), with exit code 64', async (args) => {
    const { exitCode, stdout, stderr } = await createCliWorld().run(...args);
    expect(exitCode).toBe(64);
    expect(stdout).toBe('');
    expect(stderr).toContain('Usage: tally');
  });
});

it.each([
  [['frob'], "unknown command 'frob'"],
  [['search', '--frob'], "unknown option '--frob'"],
  [['explain', 'photos'], "missing required argument 'key'"],
  [['search', '--limit', '0'], 'a whole number from 1 to 1000'],
  [['du', '--by', 'shape'], 'Allowed choices are folder, extension, class, size, age, bucket'],
  [['search', '--limit', '1e2'], 'a whole number from 1 to 1000'],
  [['dead-letters', 'replay'], 'give ids or --all'],
  [['dead-letters', 'replay', 'letter-1', '--all'], 'ids cannot be given with --all'],
  [['keys', 'revoke'], 'give id or --secret-file'],
  [['keys', 'create', 'ci', '--days', '366'], 'It must be a whole number from 1 to 365.'],
  [['setup', '--region', 'europe'], 'region'],
  [['admin', 'audit', '--jsonl', '--limit', '3'], "'--jsonl' cannot be used with option"],
])('wrong usage: %j is told and ends with 64', async (args, complaint) => {
  const world = createCliWorld();
  const forPeople = await world.run(...args);
  expect(forPeople).toMatchObject({ exitCode: 64, stdout: '' });
  expect(forPeople.stderr).toMatch(/^tally: /);
  expect(forPeople.stderr).toContain(complaint);
  const forPrograms = await world.run(...args, '--json');
  expect(forPrograms).toMatchObject({ exitCode: 64, stdout: '' });
  expect(JSON.parse(forPrograms.stderr)).toEqual({ code: 'usage', detail: expect.stringContaining(complaint) });
  expect(world.opened()).toBe(0);
});

describe('failures', () => {
  it.each([
    [new RequestError('request.invalid', 'the search is too long'), 64],
    [new RequestError('bucket.not-connected', 'photos is not connected'), 1],
    [new RequestError('job.conflict', 'job-1 is running', { job_id: 'job-1' }), 1],
  ])('a refusal is told with its code (%s)', async (error, exitCode) => {
    const world = createCliWorld();
    world.nextFails(error);
    expect(await world.run('search')).toEqual({ exitCode, stdout: '', stderr: `tally: ${error.message} (${error.code})\n` });
    world.nextFails(error);
    const { stderr } = await world.run('search --json');
    expect(JSON.parse(stderr)).toEqual({ code: error.code, detail: error.message, ...error.extra });
  });

  it('a refusal of fields names the options of the command, and for programs the fields', async () => {
    const world = createCliWorld();
    const wrong = 'bucket add photos --topic x --bucket-account 12';
    const { exitCode, stderr } = await world.run(wrong);
    expect([exitCode, stderr]).toEqual([
      64,
      'tally: --topic: must be the ARN of an SNS topic; --bucket-account: must be 12 digits (request.invalid)\n',
    ]);
    const { detail } = JSON.parse((await world.run(`${wrong} --json`)).stderr) as { readonly detail: string };
    expect(detail).toBe('topic_arn: must be the ARN of an SNS topic; bucket_account: must be 12 digits');
  });

  it('quotes what a registry names in a command, and lets none of it become a command', async () => {
    const world = createCliWorld();
    world.nextAnswers({ ...job, id: '$(reboot)' });
    expect((await world.run('reindex photos')).stderr).toBe("To see its progress: tally jobs '$(reboot)'\n");
  });

  it('a fault ends with 69 and tells its code, its reason, what to do and the page of its code', async () => {
    const world = createCliWorld();
    const fault = new FaultError('index.unreachable', 'connect ECONNREFUSED \u001b[2J');
    world.nextFails(fault);
    const forPeople = await world.run('gaps');
    expect(forPeople.exitCode).toBe(69);
    expect(forPeople.stderr).toContain('connect ECONNREFUSED \\u{1b}[2J (index.unreachable)');
    expect(forPeople.stderr).toContain('Check that the index store at TALLY_INDEX_URL is up');
    const page = `blob/v${packageJson.version}/docs/reference/error-codes.md#index-unreachable`;
    expect(forPeople.stderr).toContain(`see https://github.com/tally-index/tally/${page}`);
    world.nextFails(fault);
    const forPrograms = await world.run('gaps --json');
    expect(JSON.parse(forPrograms.stderr)).toMatchObject({ code: 'index.unreachable', detail: fault.reason, advice: expect.any(String) });
  });

  it('an unexpected error ends with 1, without passwords', async () => {
    const world = createCliWorld();
    world.nextFails(new TypeError('https://tally:secret@index:9200'));
    const { exitCode, stderr } = await world.run('jobs');
    expect(exitCode).toBe(1);
    expect(stderr).toBe('tally: unexpected error: TypeError: https://tally:***@index:9200\n');
  });
});

describe('settings', () => {
  const env = { TALLY_INDEX_SHARDS: 'many', TALLY_QEUE_URL: 'https://sqs', TALLY_LOG_LEVEL: 'loud' };

  it.each([[['serve']], [['config']], [['search']]])(
    '%j tells every mistake on a line of its own and ends with 78 before anything starts',
    async (args) => {
      const world = createCliWorld({ env });
      const { exitCode, stdout, stderr } = await world.run(...args);
      expect(exitCode).toBe(78);
      expect(stdout).toBe('');
      expect(stderr.trimEnd().split('\n')).toEqual([
        'tally: TALLY_QEUE_URL: is not a Tally setting: correct its name, or unset it',
        expect.stringContaining('tally: TALLY_LOG_LEVEL: '),
        expect.stringContaining('tally: TALLY_INDEX_SHARDS: must be a whole number'),
      ]);
      expect(world.opened() + world.served.length).toBe(0);
    },
  );
});

describe('--registry', () => {
  function createRegistryWorld(env: Readonly<Record<string, string>> = {}) {
    const urls: (string | undefined)[] = [];
    const world = createCliWorld({
      env: { TALLY_INDEX_URL: 'sqlite:nowhere', ...env },
      async openControl({ TALLY_REGISTRY_URL: url }) {
        urls.push(url);
        return createFakeControl().operations;
      },
    });
    return { run: world.run, urls };
  }

  it('is a setting as well, which the option overrides wherever it stands', async () => {
    const { run, urls } = createRegistryWorld({ TALLY_REGISTRY_URL: 'http://localhost:1234' });
    await run('gaps');
    await run('gaps --registry http://[::1]:8080');
    await run('--registry HTTP://127.0.0.1:8080 gaps');
    expect(urls).toEqual(['http://localhost:1234', 'http://[::1]:8080', 'http://127.0.0.1:8080']);
  });

  it.each([
    '127.0.0.1:8080',
    'ftp://127.0.0.1',
    'http://user:secret@127.0.0.1:8080',
    'http://127.0.0.1:8080/v1',
    'http://127.0.0.1:8080/?a',
    '',
  ])('refuses %j as an option with 64 and as a setting with 78, and repeats no password', async (url) => {
    const { run, urls } = createRegistryWorld();
    const asOption = await run('gaps', '--registry', url);
    expect(asOption.exitCode).toBe(64);
    const withSetting = createRegistryWorld({ TALLY_REGISTRY_URL: url });
    const asSetting = await withSetting.run('gaps');
    // an empty variable is none at all
    expect(asSetting.exitCode).toBe(url === '' ? 0 : 78);
    expect(asOption.stderr + asSetting.stderr).not.toContain('secret');
    expect(urls).toEqual([]);
  });
});

describe('serve', () => {
  it('serves with the settings of the environment and ends as the serving ended', async () => {
    const env = { TALLY_QUEUE_URL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/events', TALLY_INDEX_URL: 'https://index:9200' };
    const served: unknown[] = [];
    const world = createCliWorld({
      env: { ...env, AWS_REGION: 'eu-west-1' },
      async serve(settings, aws) {
        served.push(aws.region, settings.TALLY_INDEX_URL);
        return 143;
      },
    });
    expect(await world.run('serve')).toEqual({ exitCode: 143, stdout: '', stderr: '' });
    expect(served).toEqual(['eu-west-1', { product: 'opensearch', nodes: ['https://index:9200'] }]);
  });

  it('--embedded is the same as TALLY_EMBEDDED=true', async () => {
    const world = createCliWorld({ env: {} });
    expect((await world.run('serve --embedded')).exitCode).toBe(0);
    expect(world.served).toEqual([expect.objectContaining({ TALLY_EMBEDDED: true })]);
  });

  it('without a queue and an index ends with 78 and says how to try it', async () => {
    const world = createCliWorld({ env: {} });
    const { exitCode, stderr } = await world.run('serve');
    expect(exitCode).toBe(78);
    expect(stderr).toContain('TALLY_QUEUE_URL: must be set');
    expect(stderr).toContain('TALLY_INDEX_URL: must be set');
    expect(stderr).toContain('tally serve --embedded');
    expect(world.served).toEqual([]);
  });

  it('that the operator must correct something for ends with 78', async () => {
    const world = createCliWorld({ env: {}, serve: () => Promise.reject(new SettingsError(['127.0.0.1:4566 is already in use'])) });
    expect(await world.run('serve --embedded')).toEqual({
      exitCode: 78,
      stdout: '',
      stderr: 'tally: 127.0.0.1:4566 is already in use\n',
    });
  });
});
