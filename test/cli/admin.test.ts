import { describe, expect, it } from 'vitest';
import { auditRecord } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

describe('tally admin audit', () => {
  it('asks for what its options say, and shows who did what and how it ended', async () => {
    const world = createCliWorld();
    const options = ['--from', '2026-01-01', '--to', '2026-01-03T08:00:00Z', '--email', 'alice@build-1', '--key', 'ci', '--limit', '5'];
    const { stdout, stderr } = await world.run('admin', 'audit', ...options, '--event', 'BucketRemove', '--cursor', 'page-2');
    const query = { from: '2026-01-01', to: '2026-01-03T08:00:00Z', email: 'alice@build-1', key: 'ci', limit: 5 };
    expect(world.asked).toEqual([['listAudit', { query: { ...query, event: 'BucketRemove', cursor: 'page-2' } }]]);
    expect(stdout).toMatch(
      /^2026-01-02T03:04:05\.000Z +BucketRemove +failed +alice@build-1 +127\.0\.0\.1 +\{"bucket":"photos"\} +bucket\.not-connected: .*\\u\{1b\}\[2J$/m,
    );
    expect(stderr).toBe('');
  });

  it('asks for a day, which the other options may narrow', async () => {
    const world = createCliWorld();
    await world.run('admin audit --date 2026/12/31 --from 2026-12-31T08:00:00Z');
    const query = { date: '2026/12/31', from: '2026-12-31T08:00:00Z', limit: 100 };
    expect(world.asked).toEqual([['listAudit', { query }]]);
  });

  it('exports every page as dated lines of JSON with strings in the place of objects', async () => {
    const world = createCliWorld();
    const session = { email: 'bob@example.com', sessionContext: { auth: { type: 'session' } } };
    world.nextAnswers({ items: [auditRecord, auditRecord], next: 'page-2' });
    world.nextAnswers({ items: [], next: 'page-3' });
    world.nextAnswers({ items: [{ ...auditRecord, useridentity: session, parameters: undefined }] });
    const { exitCode, stdout } = await world.run('admin audit --date 2026/01/02 --jsonl');
    expect(exitCode).toBe(0);
    expect(world.asked.map(([, { query }]) => (query as { cursor?: string }).cursor)).toEqual([undefined, 'page-2', 'page-3']);
    expect(world.asked[0]?.[1]).toMatchObject({ query: { limit: 1_000 } });
    expect(stdout.endsWith('}\n')).toBe(true);
    const records = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>);
    expect(records).toHaveLength(3);
    expect(records[0]).toEqual({
      ...auditRecord,
      useridentity: '{"email":"alice@build-1","sessionContext":{"auth":{"type":"local"}}}',
      parameters: '{"bucket":"photos"}',
    });
    expect(JSON.parse(records[2]?.useridentity ?? '')).toEqual(session);
  });

  it('prints nothing but a hint where nothing matches', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [] });
    expect(await world.run('admin audit')).toEqual({ exitCode: 0, stdout: '', stderr: 'The audit has no such record.\n' });
    world.nextAnswers({ items: [] });
    expect(await world.run('admin audit --jsonl')).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });

  it.each([
    ['--date 2026-11-21', 'date: must be a day such as 2026/11/21'],
    ['--date 2026/13/01', 'date: must be a day such as 2026/11/21'],
    ['--jsonl --json', "'--jsonl' cannot be used with option '--json'"],
    ['--jsonl --limit 3', "'--jsonl' cannot be used with option '--limit <n>'"],
    ['--event Logon', 'Allowed choices are Login, '],
    ['--from yesterday', 'from: must be a day (2026-11-21) or a time in UTC'],
  ])('refuses %s', async (options, text) => {
    const { exitCode, stdout, stderr } = await createCliWorld().run('admin', 'audit', ...options.split(' '));
    expect([exitCode, stdout]).toEqual([64, '']);
    // a failure under --json is JSON
    expect(stderr.replaceAll('\\u0027', "'")).toContain(text);
  });
});

describe('tally admin access --where', () => {
  it('says that no one may read a part, and where there are more pages, that this page has no one', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [] });
    expect((await world.run('admin access --where photos')).stderr).toBe('No one who has logged in may read anything of photos.\n');
    world.nextAnswers({ items: [], next: 'page-2' });
    expect((await world.run('admin access --where photos')).stderr).toContain('anything of photos on this page.\nThere is more.');
  });
});
