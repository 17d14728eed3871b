import { describe, expect, it } from 'vitest';
import { userAnswer } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

describe('tally admin users', () => {
  it('list shows who has logged in, why they may do what, and who becomes an administrator', async () => {
    const world = createCliWorld();
    world.nextAnswers({
      items: [
        { ...userAnswer, role: 'admin', role_source: 'appointment', appointed_by: 'alice@build-1' },
        { ...userAnswer, email: 's@id', email_verified: false },
      ],
      next: 'page-2',
      waiting: [{ sub: '248289761001', appointed_by: 'root', created_at: userAnswer.created_at, expires_at: userAnswer.created_at }],
    });
    const { stdout, stderr } = await world.run('admin users list --limit 2');
    expect(stdout).toMatch(
      /^0aB1cD2eF3gH4iJ5kL6mN7 +bob@example\.com +admin +appointment by alice@build-1 +2026-01-02T03:04:05\.000Z +-$/m,
    );
    expect(stdout).toContain('s@id (not verified)');
    expect(stdout).toMatch(/^sub:248289761001 +root +2026/m);
    expect(stderr).toContain('--cursor page-2');
    expect(world.asked).toEqual([['listUsers', { query: { limit: 2 } }]]);
  });

  it.each([
    ['--disable', userAnswer.id, { disabled: true }, 'bob@example.com is disabled.\n'],
    ['--enable', userAnswer.id, { disabled: false }, 'bob@example.com is enabled.\n'],
    [
      '--role admin',
      'sub:248289761001',
      { role: 'admin' },
      'sub:248289761001 becomes an administrator at the next login, if it is before 2026-01-02T03:04:05.000Z.\n',
    ],
    ['--role user', 'Alice@example.com', { role: 'user' }, 'Alice@example.com is no administrator, and does not become one at a login.\n'],
  ])('set %s %s', async (options, id, body, text) => {
    const world = createCliWorld();
    expect(await world.run(`admin users set ${id} ${options}`)).toMatchObject({ exitCode: 0, stdout: text });
    expect(world.asked).toEqual([['changeUser', { params: { id }, body }]]);
  });

  it('set says that a known person is an administrator at once', async () => {
    const world = createCliWorld();
    world.nextAnswers({ user: { ...userAnswer, role: 'admin', role_source: 'appointment', appointed_by: 'root' } });
    const { stdout } = await world.run('admin appoint bob@example.com');
    expect(stdout).toBe('bob@example.com is an administrator now. In a browser it counts from the next login on.\n');
  });

  it.each([[''], [' --disable --enable'], [' --disable --role admin']])('set takes one change: %j', async (options) => {
    const world = createCliWorld();
    expect((await world.run(`admin users set ${userAnswer.id}${options}`)).exitCode).toBe(64);
    expect(world.asked).toEqual([]);
  });

  it('set refuses what names no person', async () => {
    const world = createCliWorld();
    const { exitCode, stderr } = await world.run('admin users set alice --role admin');
    expect([exitCode, world.asked]).toEqual([1, []]);
    expect(stderr).toContain('must be the id of a user, an e-mail address, or sub: with a subject');
  });
});

it('names of a registry that may be foreign reach the terminal escaped', async () => {
  const world = createCliWorld();
  const email = 'eve\u001b]0;owned\u0007@example.com';
  world.nextAnswers({ user: { ...userAnswer, email } });
  const disabled = await world.run('admin', 'users', 'set', userAnswer.id, '--disable');
  world.nextAnswers({ waiting: { email, appointed_by: 'x', created_at: userAnswer.created_at, expires_at: '\u001b[2J' } });
  const granted = await world.run('admin users set eve@example.com --role admin');
  expect(disabled.stdout).toContain('eve\\u{1b}]0;owned');
  // oxlint-disable-next-line no-control-regex
  for (const { stdout } of [disabled, granted]) expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
});

describe('tally serve off loopback', () => {
  const env = { TALLY_INDEX_URL: 'sqlite:nowhere', TALLY_QUEUE_URL: 'https://sqs/1/q', TALLY_HTTP_ADDRESS: '0.0.0.0:8080' };

  it('ends with 78 and says what to set', async () => {
    const world = createCliWorld({ env });
    const { exitCode, stderr } = await world.run('serve');
    expect(exitCode).toBe(78);
    expect(world.served).toEqual([]);
    for (const name of ['TALLY_OIDC_ISSUER', 'TALLY_PUBLIC_URL', 'TALLY_TRUSTED_PROXIES'])
      expect(stderr).toMatch(new RegExp(`^tally: ${name}: must be set`, 'm'));
  });

  it('serves with identity and trusted proxies', async () => {
    const identity = {
      TALLY_OIDC_ISSUER: 'https://id.example.com',
      TALLY_OIDC_CLIENT_ID: 'tally',
      TALLY_OIDC_ALLOWED: 'any',
      TALLY_PUBLIC_URL: 'https://tally.example.com',
      TALLY_TRUSTED_PROXIES: '10.20.30.4/32',
    };
    const world = createCliWorld({ env: { ...env, ...identity } });
    expect((await world.run('serve')).exitCode).toBe(0);
    expect(world.served).toHaveLength(1);
  });
});

it('tally config never shows the secret of the client', async () => {
  const env = {
    TALLY_OIDC_ISSUER: 'https://id.example.com',
    TALLY_OIDC_CLIENT_ID: 'tally',
    TALLY_OIDC_ALLOWED: 'any',
    TALLY_OIDC_CLIENT_SECRET: 'very secret',
  };
  for (const args of [['config'], ['config', '--json']]) {
    const { stdout } = await createCliWorld({ env }).run(...args);
    expect(stdout).not.toContain('very secret');
    expect(stdout).toMatch(/TALLY_OIDC_CLIENT_SECRET"?[=:] ?"?\*\*\*/);
  }
});
