import { describe, expect, it } from 'vitest';
import { userAnswer } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

describe('tally admin appoint', () => {
  it('makes an administrator by address or by subject', async () => {
    const world = createCliWorld();
    const { exitCode, stdout } = await world.run('admin appoint Alice@example.com');
    await world.run('admin appoint --sub 248289761001');
    expect(exitCode).toBe(0);
    expect(stdout).toBe('alice@example.com becomes an administrator at the next login, if it is before 2026-01-02T03:04:05.000Z.\n');
    expect(world.asked).toEqual([
      ['appointAdmin', { body: { email: 'Alice@example.com' } }],
      ['appointAdmin', { body: { sub: '248289761001' } }],
    ]);
  });

  it('is withdrawn, and those that wait are listed', async () => {
    const world = createCliWorld();
    const { stdout } = await world.run('admin appoint alice@example.com --withdraw');
    expect(stdout).toBe('alice@example.com does not become an administrator at the next login.\n');
    expect((await world.run('admin appointments --limit 2')).stdout).toMatch(/EMAIL +SUBJECT +APPOINTED BY.*\nalice@example.com /);
    expect(world.asked).toEqual([
      ['withdrawAppointment', { body: { email: 'alice@example.com' } }],
      ['listAppointments', { query: { limit: 2 } }],
    ]);
    world.nextAnswers({ items: [] });
    expect(await world.run('admin appointments')).toMatchObject({ stdout: '', stderr: expect.stringContaining('No appointment waits') });
  });

  it.each([[[]], [['a@example.com', '--sub', 's']]])('names one person: %j', async (args) => {
    const world = createCliWorld();
    expect(await world.run('admin appoint', ...args)).toMatchObject({
      exitCode: 64,
      stderr: expect.stringContaining('name one person'),
    });
    expect(world.asked).toEqual([]);
  });

  it('refuses what is not an address', async () => {
    expect(await createCliWorld().run('admin appoint alice')).toMatchObject({
      exitCode: 64,
      stderr: expect.stringContaining('must be'),
    });
  });
});

describe('tally admin users', () => {
  it('list shows who has logged in, and why they may do what', async () => {
    const world = createCliWorld();
    world.nextAnswers({
      items: [
        { ...userAnswer, role: 'admin', role_source: 'appointment' },
        { ...userAnswer, email: 's@id', email_verified: false },
      ],
      next: 'page-2',
    });
    const { stdout, stderr } = await world.run('admin users list --limit 2');
    expect(stdout).toMatch(/^0aB1cD2eF3gH4iJ5kL6mN7 +bob@example\.com +admin +appointment +2026-01-02T03:04:05\.000Z +-$/m);
    expect(stdout).toContain('s@id (not verified)');
    expect(stderr).toContain('--cursor page-2');
    expect(world.asked).toEqual([['listUsers', { query: { limit: 2 } }]]);
  });

  it.each([
    ['disable', 'disableUser', 'bob@example.com is disabled.\n'],
    ['enable', 'enableUser', 'bob@example.com is enabled.\n'],
  ])('%s a user', async (name, operation, text) => {
    const world = createCliWorld();
    expect(await world.run('admin', 'users', name, userAnswer.id)).toMatchObject({ exitCode: 0, stdout: text });
    expect(world.asked).toEqual([[operation, { params: { id: userAnswer.id } }]]);
    expect(JSON.parse((await world.run('admin', 'users', name, userAnswer.id, '--json')).stdout)).toMatchObject({ id: userAnswer.id });
  });
});

it('names of a registry that may be foreign reach the terminal escaped', async () => {
  const world = createCliWorld();
  const email = 'eve\u001b]0;owned\u0007@example.com';
  world.nextAnswers({ ...userAnswer, email });
  const disabled = await world.run('admin', 'users', 'disable', userAnswer.id);
  world.nextAnswers({ email, appointed_by: 'x', created_at: userAnswer.created_at, expires_at: '\u001b[2J' });
  const granted = await world.run('admin appoint eve@example.com');
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
