/** Identity as an outsider tries it, with the real program and HTTP: what must be refused is refused, and what must work works. */
import { DatabaseSync } from 'node:sqlite';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../src/adapters/sqlite/store.ts';
import { keyIdOf } from '../../src/domain/identity/api-key.ts';
import { refs, updateRecord } from '../../src/pipeline/records/stored.ts';
import { get } from '../support/identity/browser.ts';
import { CALLBACK, codeIn, openWalk, request, type Token, type Walk } from '../support/identity/walk.ts';
import { VERIFIER } from '../support/identity/world.ts';
import { runTally, startDaemon, type Daemon } from '../support/servers/daemon.ts';
import { unusedPort } from '../support/servers/unused-port.ts';

const FAILED = { status: 401, code: 'authentication.failed', detail: 'Authentication failed. Check your credentials or API key.' };

let walk: Walk;
let registry: Daemon;
let alice: Token;
let root: Token;

beforeAll(async () => {
  walk = await openWalk('sqlite');
  registry = await walk.start();
  alice = await walk.logIn('alice');
  root = await walk.logIn('root');
});

afterAll(() => walk[Symbol.asyncDispose]());

const sqlitePath = (): string => (walk.env['TALLY_INDEX_URL'] ?? '').replace('sqlite:', '');
const send = (method: string, path: string, sent: Parameters<typeof request>[2] = {}) => request(method, `${walk.url()}${path}`, sent);

async function answerOf(...sent: Parameters<typeof send>): Promise<Record<string, unknown>> {
  const { text } = await send(...sent);
  return JSON.parse(text) as Record<string, unknown>;
}

interface Created {
  readonly id: string;
  readonly secret: string;
}

async function createKey(owner: Token, body: Readonly<Record<string, unknown>> = {}): Promise<Created> {
  const answer = await send('POST', '/v1/api-keys', { token: owner.access_token, body: { name: 'walk', ...body } });
  expect(answer.status, answer.text).toBe(201);
  const { key, secret } = JSON.parse(answer.text) as { readonly key: Created; readonly secret: string };
  walk.secrets.add(secret);
  return { id: key.id, secret };
}

async function auditOf(event: string): Promise<readonly Record<string, unknown>[]> {
  const { items } = await answerOf('GET', `/v1/admin/audit?event=${event}`, { token: root.access_token });
  return items as Record<string, unknown>[];
}

describe('an API key', () => {
  it.each([0, 366, 1.5, '90', true, null])('cannot be created for %j days', async (days) => {
    const answer = await answerOf('POST', '/v1/api-keys', { token: alice.access_token, body: { name: 'days', expires_in_days: days } });
    expect(answer).toMatchObject({ status: 400, code: 'request.invalid', detail: 'expires_in_days: must be a whole number from 1 to 365' });
  });

  it('ends after 90 days by default, and counts with white space around it', async () => {
    const { id, secret } = await createKey(alice);
    const key = await answerOf('GET', `/v1/api-keys/${id}`, { token: alice.access_token });
    expect(Date.parse(String(key['expires_at'])) - Date.parse(String(key['created_at']))).toBe(90 * 86_400_000);
    const answer = await answerOf('GET', '/v1/session', { headers: { authorization: `Bearer   ${secret}  ` } });
    expect(answer).toMatchObject({ kind: 'api_key', user: { email: 'alice@example.com' }, key: { id, status: 'ACTIVE' } });
  });

  it('is refused in the same words whatever is wrong with it', async () => {
    const [expired, revoked] = [await createKey(alice), await createKey(alice)];
    const store = createSqliteStore({ path: sqlitePath() });
    await updateRecord(store.state, refs.apiKey(expired.id), (record) => record && { ...record, expiresAtMs: Date.now() - 1 }, 'now');
    await store.close();
    expect((await send('DELETE', `/v1/api-keys/${revoked.id}`, { token: alice.access_token })).status).toBe(204);
    const bob = await walk.logIn('bob');
    const disabled = await createKey(bob);
    const { items } = await answerOf('GET', '/v1/admin/users', { token: root.access_token });
    const { id } = (items as { readonly id: string; readonly email: string }[]).find(({ email }) => email === 'bob@example.com') ?? {
      id: '',
    };
    expect((await send('POST', `/v1/admin/users/${id}/disable`, { token: root.access_token })).status).toBe(200);
    const typo = expired.secret.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
    const tokens = [expired.secret, revoked.secret, disabled.secret, typo, 'qk_short', bob.access_token, 'nonsense'];
    for (const token of tokens) {
      const answer = await send('GET', '/v1/session', { token });
      expect(answer.headers['www-authenticate']).toBe('Bearer');
      expect(JSON.parse(answer.text)).toMatchObject(FAILED);
    }
    const listed = await answerOf('GET', '/v1/api-keys?status=EXPIRED', { token: alice.access_token });
    expect(listed['items']).toMatchObject([{ id: expired.id, status: 'EXPIRED' }]);
    expect(await answerOf('GET', `/v1/api-keys/${revoked.id}`, { token: alice.access_token })).toMatchObject({ status: 404 });
    const ofBob = await answerOf('GET', '/v1/admin/api-keys?email=bob@example.com', { token: root.access_token });
    expect(ofBob['items']).toMatchObject([{ id: disabled.id, owner_disabled: true }]);
  });

  it('is announced to end in each answer, from 14 days before', async () => {
    const [soon, late] = [await createKey(alice, { expires_in_days: 14 }), await createKey(alice, { expires_in_days: 15 })];
    const expires = (await answerOf('GET', `/v1/api-keys/${soon.id}`, { token: alice.access_token }))['expires_at'];
    for (const path of ['/v1/session', '/v1/buckets', '/v1/buckets?wrong=1', '/v1/admin/audit']) {
      expect((await send('GET', path, { token: soon.secret })).headers['tally-key-expires'], path).toBe(expires);
      expect((await send('GET', path, { token: late.secret })).headers['tally-key-expires'], path).toBeUndefined();
    }
    // an answer may be read before the log line that was written first
    await registry.line('an API key in use ends soon');
    expect(registry.logged('an API key in use ends soon')).toHaveLength(1);
  });

  it('is unused if it was used long ago, or never and was created before', async () => {
    const [never, longAgo, today, young] = [await createKey(root), await createKey(root), await createKey(root), await createKey(root)];
    const store = createSqliteStore({ path: sqlitePath() });
    const past = Date.parse('2026-01-01');
    const change = (id: string, times: { readonly createdAtMs?: number; readonly lastUsedAtMs?: number }) =>
      updateRecord(store.state, refs.apiKey(id), (record) => record && { ...record, ...times }, 'now');
    await change(never.id, { createdAtMs: past });
    await change(longAgo.id, { createdAtMs: past, lastUsedAtMs: past + 1 });
    await change(today.id, { createdAtMs: past, lastUsedAtMs: Date.now() });
    await store.close();
    const { items } = await answerOf('GET', '/v1/admin/api-keys?status=ACTIVE&unused_since=2026-02-01', { token: root.access_token });
    const ids = (items as Created[]).map(({ id }) => id);
    expect(ids.toSorted()).toEqual([never.id, longAgo.id].toSorted());
    expect(ids).not.toContain(young.id);
  });
});

describe('a login', () => {
  const redeem = (body: Readonly<Record<string, string>>) =>
    answerOf('POST', '/login/token', {
      body: { grant_type: 'authorization_code', code_verifier: VERIFIER, redirect_uri: CALLBACK, ...body },
    });

  it('sends no code to a foreign address', async () => {
    const foreign = ['https://evil.example/callback', 'http://localhost:9999/callback', 'http://127.0.0.1:9999@evil.example/callback'];
    for (const redirect_uri of foreign) {
      const answer = await get(walk.authorization({ redirect_uri }));
      expect(answer.location).toBeUndefined();
      expect(JSON.parse(answer.text)).toMatchObject({ status: 400, code: 'request.invalid' });
    }
  });

  it('accepts a code once, and a second exchange ends the session of the first', async () => {
    const code = codeIn((await walk.browse('alice', walk.authorization())).redirect ?? '');
    const { access_token: token } = (await redeem({ code })) as Partial<Token>;
    expect(token).toMatch(/^qs_/);
    expect(await redeem({ code })).toMatchObject({ status: 400, code: 'login.invalid-grant', error: 'invalid_grant' });
    expect(await answerOf('GET', '/v1/session', { token: String(token) })).toMatchObject(FAILED);
  });

  it('refuses a wrong verifier, another redirect, and the answer of an issuer with an old state', async () => {
    for (const wrong of [{ code_verifier: 'x'.repeat(43) }, { redirect_uri: 'http://127.0.0.1:9998/callback' }]) {
      const code = codeIn((await walk.browse('alice', walk.authorization())).redirect ?? '');
      expect(await redeem({ code, ...wrong })).toMatchObject({ status: 400, code: 'login.invalid-grant' });
      // the code is no longer valid
      expect(await redeem({ code })).toMatchObject({ status: 400, code: 'login.invalid-grant' });
    }
    expect(await answerOf('GET', '/login/callback?code=old&state=old')).toMatchObject({ status: 400, code: 'login.expired' });
  });

  it('shows a code to paste where no program waits', async () => {
    const address = new URL(walk.authorization({ no_browser: 'true' }));
    address.searchParams.delete('redirect_uri');
    const { code = '' } = await walk.browse('alice', address.href);
    const grant = { grant_type: 'authorization_code', code, code_verifier: VERIFIER };
    expect(await answerOf('POST', '/login/token', { body: grant })).toMatchObject({ token_type: 'Bearer', expires_in: 604_800 });
  });

  it('gives no session to a person whom no rule allows', async () => {
    const { redirect = '' } = await walk.browse('mallory', walk.authorization());
    expect(new URL(redirect).searchParams.get('error')).toBe('access_denied');
    expect(codeIn(redirect)).toBe('');
  });
});

describe('a caller of the network', () => {
  it('is refused by an anonymous control plane behind a proxy, and cannot be let in without identity', async () => {
    const anonymous = await startDaemon({ TALLY_ROLES: 'http', TALLY_INDEX_URL: `sqlite:${join(walk.folder, 'anonymous.sqlite')}` });
    await anonymous.ready();
    for (const header of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host']) {
      const answer = await request('GET', `${anonymous.controlUrl}/v1/buckets`, { headers: { [header]: '203.0.113.9' } });
      expect(JSON.parse(answer.text)).toMatchObject({ status: 403, code: 'request.forwarded' });
    }
    expect((await request('GET', `${anonymous.controlUrl}/v1/buckets`)).status).toBe(200);
    await anonymous.stop();
    const open = await startDaemon({
      TALLY_ROLES: 'http',
      TALLY_INDEX_URL: `sqlite:${join(walk.folder, 'open.sqlite')}`,
      TALLY_HTTP_ADDRESS: `0.0.0.0:${await unusedPort()}`,
    });
    expect((await open.exited).code).toBe(78);
    for (const name of ['TALLY_OIDC_ISSUER', 'TALLY_PUBLIC_URL', 'TALLY_TRUSTED_PROXIES']) expect(open.text).toContain(name);
  });

  it('does not choose the address in the audit', async () => {
    const headers = { 'x-forwarded-for': '203.0.113.9' };
    await send('POST', '/v1/api-keys', { token: alice.access_token, body: { name: 'forged' }, headers });
    const records = await auditOf('ApiKeyCreate');
    expect(records[0]).toMatchObject({ parameters: { name: 'forged' }, sourceipaddress: '127.0.0.1' });
  });

  it('with 200 wrong keys gets the same answer to each, while a valid key from there works', async () => {
    const { secret } = await createKey(alice);
    const answers = new Set<string>();
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const { status, text } = await send('GET', '/v1/session', { token: `qk_${String(attempt).padStart(49, '0')}` });
      answers.add(`${status} ${String(JSON.parse(text).detail)}`);
    }
    expect([...answers]).toEqual(['401 Authentication failed. Check your credentials or API key.']);
    expect((await send('GET', '/v1/session', { token: secret })).status).toBe(200);
  });
});

describe('the audit', () => {
  it('that takes no records stops admin acts, which are not done', async () => {
    const { id } = await createKey(alice);
    // the registry writes too, for example what it counted of wrong keys
    const database = new DatabaseSync(sqlitePath(), { timeout: 60_000 });
    database.exec("CREATE TRIGGER read_only BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'read-only'); END");
    const token = root.access_token;
    const acts = [
      await answerOf('DELETE', `/v1/admin/api-keys/${id}`, { token }),
      await answerOf('POST', '/v1/admin/grants', { token, body: { email: 'eve@example.com' } }),
      await answerOf('POST', '/v1/api-keys', { token, body: { name: 'unaudited' } }),
    ];
    database.exec('DROP TRIGGER read_only');
    database.close();
    for (const act of acts) expect(act).toMatchObject({ status: 503, code: 'audit.unavailable' });
    expect(await answerOf('GET', `/v1/admin/api-keys/${id}`, { token })).toMatchObject({ status: 'ACTIVE' });
    expect((await answerOf('GET', '/v1/api-keys?name=unaudited', { token }))['items']).toEqual([]);
    expect((await send('DELETE', `/v1/admin/api-keys/${id}`, { token })).status).toBe(204);
  });
});

describe('what remains when the registry has stopped', () => {
  let exported = '';

  beforeAll(async () => {
    // attempts that failed are counted in windows, which are stored at the end
    await registry.stop();
    exported = (await runTally(['admin', 'audit', '--jsonl'], walk.env)).stdout;
  });

  it('says in the audit what was wrong with each credential', () => {
    const records = exported.split('\n').filter((line) => line.includes('"AuthenticationFailed"'));
    const reasons = new Set(records.map((line) => (JSON.parse(line) as { readonly reason: string }).reason));
    for (const each of ['expired', 'revoked', 'owner-disabled', 'mistyped', 'malformed']) expect(reasons).toContain(`API key ${each}`);
  });

  it('contains no secret: neither the store, nor the log, nor the export of the audit', async () => {
    expect(exported.split('\n').length).toBeGreaterThan(20);
    const folder = dirname(sqlitePath());
    const files = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'latin1')));
    const places = { store: files.join('\n'), log: JSON.stringify(registry.log) + registry.text, audit: exported };
    expect(walk.secrets.size).toBeGreaterThan(20);
    // what must be there, so that this test looks at the right places
    const secret = [...walk.secrets].find((each) => each.startsWith('qk_')) ?? '';
    expect(places.store).toContain(keyIdOf(secret));
    for (const [place, text] of Object.entries(places)) {
      for (const each of walk.secrets) expect(text.includes(each), `${place} has a secret: ${each}`).toBe(false);
      expect(text).not.toMatch(/qk_[0-9A-Za-z]{49}|q[sr]_[0-9A-Za-z]{30}/);
    }
  });
});
