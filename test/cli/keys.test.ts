import { describe, expect, it } from 'vitest';
import { anyApiKey, apiKey, keySecret } from '../support/fakes/control.ts';
import { RequestError } from '../../src/domain/request-error.ts';
import { createCliWorld } from './world.ts';

describe('tally keys', () => {
  it('create prints the secret once, with a warning on stderr', async () => {
    const world = createCliWorld();
    const { exitCode, stdout, stderr } = await world.run('keys create', 'nightly export', '--days', '60', '--scope', 'read');
    expect(exitCode).toBe(0);
    expect(world.asked).toEqual([['createApiKey', { body: { name: 'nightly export', expires_in_days: 60, scopes: ['read'] } }]]);
    expect(stdout.match(/^secret +(qk_\w+)$/m)?.[1]).toBe(keySecret);
    expect(stdout).toMatch(/^last_used +never$/m);
    expect(stderr).toBe('Store the secret now: it cannot be shown again.\n');
  });

  it('create leaves days and scopes to the registry unless they are given', async () => {
    const world = createCliWorld();
    await world.run('keys create ci');
    expect(world.asked).toEqual([['createApiKey', { body: { name: 'ci', expires_in_days: 90 } }]]);
  });

  it('create takes several scopes', async () => {
    const world = createCliWorld();
    await world.run('keys create ci --scope read operate');
    expect(world.asked.map(([, { body }]) => body)).toMatchObject([{ scopes: ['read', 'operate'] }]);
  });

  it.each(['0', '366', '1.5', 'x', '-1', '9999'])('create refuses %s days', async (days) => {
    const world = createCliWorld();
    const { exitCode, stderr } = await world.run('keys', 'create', 'ci', `--days=${days}`);
    expect([exitCode, world.asked]).toEqual([64, []]);
    expect(stderr).toContain('It must be a whole number from 1 to 365.');
  });

  it('create says what to do without a login', async () => {
    const world = createCliWorld();
    world.nextFails(new RequestError('session.required', 'log in with `tally login`, then use `tally keys create`'));
    expect(await world.run('keys create ci')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'tally: log in with `tally login`, then use `tally keys create` (session.required)\n',
    });
  });

  it('list shows each key on a line, and how to see more', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [apiKey, { ...apiKey, name: 'x\u001b[2J', last_used_at: apiKey.created_at }], next: 'page-2' });
    const { stdout, stderr } = await world.run('keys list --name ci --fingerprint qk_abcd…wxyz --status ACTIVE --limit 2');
    const query = { name: 'ci', fingerprint: 'qk_abcd…wxyz', status: 'ACTIVE', limit: 2 };
    expect(world.asked).toEqual([['listApiKeys', { query }]]);
    const [, first, second] = stdout.split('\n');
    expect(first).toMatch(/^k0123456789abcdefghijAB +nightly export +qk_abcd…wxyz +ACTIVE +2026-01-02T03:04:05\.000Z .* never +read$/);
    expect(second).toContain('x\\u{1b}[2J');
    expect(stderr).toContain('--cursor page-2');
  });

  it('list says that there are none', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [] });
    expect(await world.run('keys list')).toEqual({ exitCode: 0, stdout: '', stderr: 'There are no such API keys here.\n' });
  });

  it('get and revoke take the id', async () => {
    const world = createCliWorld();
    expect((await world.run('keys get k1')).stdout).toMatch(/^id +k0123456789abcdefghijAB$/m);
    expect((await world.run('keys revoke k1')).stdout).toBe('Revoked. Every process refuses the key within 5 s.\n');
    expect(world.asked).toEqual([
      ['getApiKey', { params: { id: 'k1' } }],
      ['revokeApiKey', { params: { id: 'k1' } }],
    ]);
  });

  it('revoke takes a secret from a file only, and repeats it nowhere', async () => {
    const world = createCliWorld({ readFile: () => ({ text: ` ${keySecret}\n`, mode: 0o600 }) });
    const { exitCode, stdout, stderr } = await world.run('keys revoke --secret-file leaked.txt');
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(world.asked).toEqual([['revokeApiKeyBySecret', { body: { secret: ` ${keySecret}` } }]]);
    expect(stdout).toContain('If this was the secret of an API key, the key is revoked now.');
    expect(stdout).not.toContain(keySecret.slice(0, 12));
    const json = await world.run('keys revoke --secret-file leaked.txt --json');
    expect(JSON.parse(json.stdout)).toEqual({});
  });

  it('revoke sends a secret by https or on this machine, and nowhere else', async () => {
    const run = async (registry: string) => {
      const world = createCliWorld({ readFile: () => ({ text: keySecret, mode: 0o600 }) });
      const ended = await world.run('keys', 'revoke', '--secret-file', 'leaked.txt', '--registry', registry);
      return { ...ended, asked: world.asked.length };
    };
    expect(await run('https://registry.example.com')).toMatchObject({ exitCode: 0, asked: 1 });
    expect(await run('http://127.0.0.1:8080')).toMatchObject({ exitCode: 0, asked: 1 });
    const refused = await run('http://registry.example.com');
    expect(refused).toMatchObject({ exitCode: 64, stdout: '', asked: 0 });
    expect(refused.stderr).toContain('the address of the registry must use https; http is allowed for this machine only');
  });

  it.each([[[]], [['k1', '--secret-file', 'leaked.txt']]])('revoke refuses %j', async (args) => {
    const world = createCliWorld();
    const { exitCode, stderr } = await world.run('keys revoke', ...args);
    expect([exitCode, world.asked]).toEqual([64, []]);
    expect(stderr).toContain('name the key by its ID, or by a file with its secret');
  });

  it('revoke refuses a file that cannot be read, without its name, which may be the secret itself', async () => {
    const world = createCliWorld({
      readFile: () => {
        throw Object.assign(new Error(`no file ${keySecret}`), { code: 'ENOENT' });
      },
    });
    const { exitCode, stderr } = await world.run('keys', 'revoke', '--secret-file', keySecret);
    expect([exitCode, stderr]).toEqual([64, 'tally: --secret-file: must name a file that can be read (ENOENT)\n']);
  });
});

describe('tally admin keys', () => {
  it('list filters all users', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [{ ...anyApiKey, user_email_verified: false, owner_disabled: true }] });
    const filters = ['--email', 'bob@example.com', '--name', 'ci', '--status', 'ACTIVE', '--unused-since', '2026-08-01'];
    const { stdout } = await world.run('admin keys list', ...filters);
    const query = { email: 'bob@example.com', key_name: 'ci', status: 'ACTIVE', unused_since: '2026-08-01', limit: 100 };
    expect(world.asked).toEqual([['listAllApiKeys', { query }]]);
    expect(stdout).toMatch(/ bob@example\.com \(not verified\) \(disabled\) +0aB1cD2eF3gH4iJ5kL6mN7$/m);
  });

  it('get and revoke take the id', async () => {
    const world = createCliWorld();
    expect((await world.run('admin keys get k1')).stdout).toMatch(/^owner_disabled +no$/m);
    await world.run('admin keys revoke k1');
    expect(world.asked).toEqual([
      ['getAnyApiKey', { params: { id: 'k1' } }],
      ['revokeAnyApiKey', { params: { id: 'k1' } }],
    ]);
  });

  it('list refuses a moment that is none', async () => {
    const { exitCode, stderr } = await createCliWorld().run('admin keys list --unused-since yesterday');
    expect(exitCode).toBe(64);
    expect(stderr).toContain('unused_since: must be a day (2026-11-21) or a time in UTC');
  });
});
