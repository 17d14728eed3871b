/** What every command that is made from a row promises: its request, its output and its exit codes. Its help: run-cli.test.ts and docs/reference/cli.md. */
import { describe, expect, it } from 'vitest';
import type { RowCommand } from '../../src/registry/contract/command.ts';
import { rowsOfControlPlane } from '../../src/registry/contract/contract.ts';
import { apiKey, auditRecord, bucketAnswer, gap, keySecret, planAnswer, userAnswer } from '../support/fakes/control.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createCliWorld, unsafeIn } from './world.ts';

const commands = rowsOfControlPlane.flatMap((row) => [row.cli ?? []].flat().map((command) => ({ row, command, words: command.words })));

/** The words of an example, without the name of the program. */
function argumentsOf(example: string): readonly string[] {
  const line = example.replace('URL', 'http://127.0.0.1:8080');
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, ...found]) => found.find((word) => word !== undefined) ?? '').slice(1);
}

/** The first example, to which a person agrees. */
function agreedOf({ confirm, examples: [example] }: RowCommand): readonly string[] {
  return [...argumentsOf(example), ...(confirm === undefined || example.includes('--yes') ? [] : ['--yes'])];
}

describe.each(commands)('tally $words', ({ row, command }) => {
  const words = agreedOf(command);

  it.each(command.examples)('requests what its example says: %s', async (each) => {
    const world = createCliWorld();
    const { exitCode } = await world.run('', ...agreedOf({ ...command, examples: [each] }));
    expect([exitCode, world.asked[0]?.[0]]).toEqual([0, row.operation]);
    expect(JSON.stringify(world.asked[0]?.[1])).toContain(JSON.stringify(command.fixed ?? {}).slice(1, -1));
  });

  it('prints the answer with --json and nothing else', async () => {
    const { exitCode, stdout, stderr } = await createCliWorld().run('', ...words, '--json');
    expect([exitCode, stderr]).toEqual([0, '']);
    const printed: unknown = JSON.parse(stdout);
    expect(row.answer?.parse(printed) ?? printed).toEqual(printed);
    expect(unsafeIn(stdout)).toEqual([]);
  });

  it('prints its columns, and what it has to say where there is nothing', async () => {
    const world = createCliWorld();
    const { stdout } = await world.run('', ...words);
    expect(unsafeIn(stdout)).toEqual([]);
    if (command.none === undefined) return expect(stdout.trim()).not.toBe('');
    for (const heading of Object.keys(command.columns ?? {})) expect(stdout.split('\n')[0]).toContain(heading.toUpperCase());
    world.nextAnswers({ items: [] });
    const empty = await world.run('', ...words);
    expect([empty.exitCode, empty.stdout]).toEqual([0, '']);
    expect(empty.stderr).not.toBe('');
  });
});

it.each(commands.filter(({ row }) => 'cursor' in (row.query?.shape ?? {})))(
  'tally $words asks for a page, and says how to see the next',
  async ({ command }) => {
    const world = createCliWorld();
    world.nextAnswers({ items: [], next: 'page-3' });
    const { stderr } = await world.run('', ...agreedOf(command), '--limit', '5', '--cursor', 'page-2');
    expect(world.asked[0]?.[1]).toMatchObject({ query: { limit: 5, cursor: 'page-2' } });
    expect(stderr).toContain('There is more. Repeat the command with --cursor page-3\n');
  },
);

it.each(commands.filter(({ command }) => command.confirm !== undefined))(
  'tally $words changes nothing unless a person agrees',
  async ({ command }) => {
    const words = agreedOf(command).filter((word) => word !== '--yes');
    const alone = createCliWorld();
    expect(await alone.run('', ...words)).toEqual({
      exitCode: 64,
      stdout: '',
      stderr: expect.stringMatching(/^tally: This deletes .*: repeat the command with --yes\n$/),
    });
    const questions: string[] = [];
    const world = createCliWorld({ confirm: async (question) => questions.push(question) === 2 });
    expect(await world.run('', ...words)).toEqual({ exitCode: 1, stdout: '', stderr: 'tally: nothing was changed\n' });
    expect([alone.asked, world.asked]).toEqual([[], []]);
    expect((await world.run('', ...words)).exitCode).toBe(0);
    expect(questions).toEqual(Array.from({ length: 2 }, () => expect.stringMatching(/^This deletes .*\. Continue\?$/)));
  },
);

const AT = '2026-01-02T03:04:05.000Z';
/** Of a table: its cells. */
const cellsOf = (text: string): readonly string[] => text.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '));
describe('exactly', () => {
  it.each<[line: string, answer: unknown, request: readonly [string, object], out: readonly string[], err?: readonly string[]]>([
    [
      'keys list --name ci --fingerprint qk_abcd…wxyz --status ACTIVE',
      { items: [apiKey, { ...apiKey, name: 'x\u001b[2J', last_used_at: AT }], next: 'page-2' },
      ['listApiKeys', { query: { name: 'ci', fingerprint: 'qk_abcd…wxyz', status: 'ACTIVE' } }],
      [
        'ID | NAME | FINGERPRINT | STATUS | CREATED | EXPIRES | LAST USED | SCOPES',
        `k0123456789abcdefghijAB | nightly export | qk_abcd…wxyz | ACTIVE | ${AT} | 2026-04-02T03:04:05.000Z | never | read`,
        `k0123456789abcdefghijAB | x\\u{1b}[2J | qk_abcd…wxyz | ACTIVE | ${AT} | 2026-04-02T03:04:05.000Z | ${AT} | read`,
      ],
      ['There is more. Repeat the command with --cursor page-2'],
    ],
    [
      'admin users list',
      {
        items: [
          { ...userAnswer, role: 'admin', role_source: 'appointment', appointed_by: 'alice@build-1' },
          { ...userAnswer, email: 's@id', email_verified: false },
        ],
        waiting: [{ sub: '248289761001', appointed_by: 'root', created_at: AT, expires_at: AT }],
      },
      ['listUsers', { query: { limit: 100 } }],
      [
        'ID | EMAIL | ROLE | BECAUSE OF | LAST LOGIN | DISABLED',
        `0aB1cD2eF3gH4iJ5kL6mN7 | bob@example.com | admin | appointment by alice@build-1 | ${AT} | -`,
        `0aB1cD2eF3gH4iJ5kL6mN7 | s@id (not verified) | user | - | ${AT} | -`,
        '',
        'ADMINISTRATOR AT THE FIRST LOGIN | APPOINTED BY | SINCE | ENDS',
        `sub:248289761001 | root | ${AT} | ${AT}`,
      ],
    ],
    [
      'bucket list',
      {
        items: [
          {
            ...bucketAnswer,
            last_compared_at: '2026-01-02T04:05:05.000Z',
            status: {
              state: 'deletions_held',
              severity: 'bad',
              sentence: '1,035 deletions wait for you',
              act: { kind: 'jobs', command: 'tally jobs' },
            },
          },
          { bucket: 'videos', status: bucketAnswer.status, gaps: 0 },
        ],
        unconnected: [{ bucket: 'stray', count: 3, first_seen_at: AT, last_seen_at: AT }],
        activity: { jobs: 0, dead_letters: 3 },
      },
      ['listBuckets', { query: { limit: 100 } }],
      [
        'BUCKET | REGION | SOURCE | VERSIONS | ENRICH | LAST EVENT | COMPARED | STATUS',
        'photos | eu-west-1 | notification | enabled | none | - | 59 min | 1,035 deletions wait for you',
        'videos | - | - | - | - | - | - | ok',
        '',
        'NOT CONNECTED | EVENTS | FIRST | LAST',
        'stray | 3 | 2 h | 2 h',
      ],
      ['To do: tally jobs', 'Dead letters: 3. To see them: `tally dead-letters list`'],
    ],
    [
      'dead-letters show letter-1',
      { id: 'letter-1', sent_at: AT, size_bytes: 9, context: { queue: '\u001b[2J' }, body: '{\n"x"\u001b[2J\r\n}' },
      ['getDeadLetter', { params: { id: 'letter-1' } }],
      [
        'id | letter-1',
        `sent | ${AT}`,
        'size | 9 B',
        'fault | not stated: SQS itself moved the message here, or there was no room for the reason',
        'context | {"queue":"\\\\u001b[2J"}'.replace('\\\\', '\\'),
        '',
        '{',
        '"x"\\u{1b}[2J\\u{d}',
        '}',
      ],
    ],
    [
      'keys create ci --days 60 --scope read --scope operate',
      { key: { ...apiKey, scopes: ['read', 'operate'] }, secret: keySecret },
      ['createApiKey', { body: { name: 'ci', expires_in_days: 60, scopes: ['read', 'operate'] } }],
      [
        `secret | ${keySecret}`,
        '',
        'id | k0123456789abcdefghijAB',
        'name | nightly export',
        'fingerprint | qk_abcd…wxyz',
        'status | ACTIVE',
        `created | ${AT}`,
        'expires | 2026-04-02T03:04:05.000Z',
        'last used | never',
        'scopes | read, operate',
        'owner | bob@example.com',
      ],
      ['Store the secret now: it cannot be shown again.'],
    ],
    [
      'bucket remove photos --keep-aws --yes',
      { bucket: 'photos', kept: [{ name: 'arn:topic', reason: 'others are subscribed to it' }] },
      ['removeBucket', { params: { bucket: 'photos' }, query: { keep_aws: 'true' } }],
      ['photos is disconnected, and its documents are deleted from the index.'],
      ['Left in AWS: arn:topic: others are subscribed to it'],
    ],
    [
      'admin appoint bob@example.com',
      { user: { ...userAnswer, email: 'eve\u001b]0;owned\u0007@example.com', role: 'admin' } },
      ['changeUser', { params: { id: 'bob@example.com' }, body: { role: 'admin' } }],
      ['eve\\u{1b}]0;owned\\u{7}@example.com is an administrator now. In a browser it counts from the next login on.'],
    ],
    [
      'doctor photos',
      { bucket: 'photos', status: 'broken', findings: planAnswer.findings },
      ['diagnoseBucket', { params: { bucket: 'photos' } }],
      [
        'photos: broken',
        'broken: photos has no notification with the Id tally-0a1b2c3d (connect.not-made)',
        ' | why | S3 sends no events to Tally',
        ' | do | tally bucket add photos',
      ],
    ],
    [
      'dead-letters discard --all --yes',
      { discarded: 1_000, remaining: 43 },
      ['discardDeadLetters', { body: { all: true } }],
      ['Deleted: 1000. About 43 remain. `tally dead-letters list` shows them: look at their reasons before you repeat the command.'],
    ],
    [
      'dead-letters replay a b',
      { replayed: 2, remaining: 2 },
      ['replayDeadLetters', { body: { ids: ['a', 'b'] } }],
      ['Sent back: 2. About 2 remain. `tally dead-letters list` shows them.'],
    ],
  ])('%s', async (line, answer, request, out, err = []) => {
    const world = createCliWorld();
    world.nextAnswers(answer);
    const { exitCode, stdout, stderr } = await world.run(line);
    expect(world.asked).toEqual([request]);
    const isBad = line.startsWith('doctor');
    expect([exitCode, cellsOf(stdout), cellsOf(stderr)]).toEqual([isBad ? 1 : 0, [...out, ''], [...err, '']]);
  });

  it('gaps says of each what happens next, and when by the present plan', async () => {
    const world = createCliWorld();
    const items = [
      gap,
      { ...gap, due_at: '2026-01-02T05:07:05.000Z', last_seen_at: '2026-01-02T08:04:05.000Z' },
      { ...gap, prefix: 'a/b', next: 'job-7 failed: \u001b[2J', due_at: '2026-01-02T05:09:05.000Z' },
      { ...gap, next: 'a re-index is repairing it', job_id: 'job-7' },
      { ...gap, state: 'closed', next: undefined, job_id: 'job-6' },
    ];
    world.nextAnswers({ items });
    const { stdout } = await world.run('gaps');
    expect(cellsOf(stdout.trimEnd())).toEqual([
      'BUCKET | PREFIX | SINCE | LAST | WHY | NEXT',
      'photos | - | 2 h | 2 h | dead letter: record.invalid (2 times) | a re-index begins',
      'photos | - | 2 h | 0 s | dead letter: record.invalid (2 times) | a re-index begins, at 05:07 UTC (in 3 min)',
      'photos | a/b | 2 h | 2 h | dead letter: record.invalid (2 times) | job-7 failed: \\u{1b}[2J, at 05:09 UTC (in 5 min)',
      'photos | - | 2 h | 2 h | dead letter: record.invalid (2 times) | a re-index is repairing it',
      'photos | - | 2 h | 2 h | dead letter: record.invalid (2 times) | closed by job-6',
    ]);
  });

  it('--jsonl prints every page as lines, each as the row says', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [auditRecord, auditRecord], next: 'page-2' });
    world.nextAnswers({ items: [], next: 'page-3' });
    world.nextAnswers({ items: [{ ...auditRecord, parameters: undefined }] });
    const { exitCode, stdout } = await world.run('admin audit --date 2026/01/02 --jsonl');
    const pages = [{}, { cursor: 'page-2' }, { cursor: 'page-3' }];
    expect(world.asked).toEqual(pages.map((page) => ['listAudit', { query: { date: '2026/01/02', limit: 1_000, ...page } }]));
    const useridentity = '{"email":"alice@build-1","sessionContext":{"auth":{"type":"local"}}}';
    const { parameters: _, ...without } = auditRecord;
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    const whole = { ...auditRecord, useridentity, parameters: '{"bucket":"photos"}' };
    expect([exitCode, lines]).toEqual([0, [whole, whole, { ...without, useridentity }]]);
    world.nextAnswers({ items: [] });
    expect(await world.run('admin audit --jsonl')).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });
});

it('a request is repeated while the answer says that it is being applied, as long after it as the registry says, and 300 times at most', async () => {
  const clock = createFakeClock({ autoAdvance: true });
  const world = createCliWorld({ clock });
  const applying = { bucket: 'photos', state: 'applying' };
  world.nextAnswers({ ...applying, waiting_for: 'S3', retry_after_ms: 2_000 });
  world.nextAnswers(applying);
  const [beganMs, { exitCode, stderr }] = [clock.monotonicMs(), await world.run('bucket resume photos')];
  const request = { params: { bucket: 'photos' }, body: { paused: false } };
  expect([exitCode, world.asked]).toEqual([0, Array.from({ length: 3 }, () => ['changeNotification', request])]);
  expect(stderr).toMatch(/^Waiting for S3\.\nWaiting for AWS\.\n/);
  expect(clock.monotonicMs() - beganMs).toBe(2_500);
  for (let count = 0; count < 400; count += 1) world.nextAnswers(applying);
  expect((await world.run('bucket resume photos')).stderr).toContain('AWS does not show the change yet');
  expect(world.asked).toHaveLength(303);
});

describe('a secret', () => {
  it('is taken from a file only, and repeated nowhere', async () => {
    const world = createCliWorld({ readFile: () => ({ text: ` ${keySecret}\n`, mode: 0o600 }) });
    const { exitCode, stdout, stderr } = await world.run('keys revoke --secret-file leaked.txt');
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(world.asked).toEqual([['revokeApiKeyBySecret', { body: { secret: ` ${keySecret}` } }]]);
    expect(stdout).toBe('If this was the secret of an API key, the key is now revoked. Every process refuses it within 5 s.\n');
    expect(JSON.parse((await world.run('keys revoke --secret-file leaked.txt --json')).stdout)).toEqual({});
  });

  it.each([
    ['https://registry.example.com', 0],
    ['http://127.0.0.1:8080', 0],
    ['http://registry.example.com', 64],
  ])('is sent by https or on this machine, and nowhere else: %s', async (registry, exitCode) => {
    const world = createCliWorld({ readFile: () => ({ text: keySecret, mode: 0o600 }) });
    const ran = await world.run(`keys revoke --secret-file leaked.txt --registry ${registry}`);
    expect([ran.exitCode, world.asked.length]).toEqual([exitCode, exitCode === 0 ? 1 : 0]);
    if (exitCode > 0) expect(ran.stderr).toContain('must use https; http is allowed for this machine only');
  });

  it('is not taken from a file that cannot be read, whose name may be the secret itself', async () => {
    const readFile = () => {
      throw Object.assign(new Error(`no file ${keySecret}`), { code: 'ENOENT' });
    };
    const { exitCode, stderr } = await createCliWorld({ readFile }).run('keys', 'revoke', '--secret-file', keySecret);
    expect([exitCode, stderr]).toEqual([64, 'tally: --secret-file: must name a file that can be read (ENOENT)\n']);
  });
});
