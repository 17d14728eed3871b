/**
 * Identity as an outsider tries it, with the real program and HTTP: keys that must be refused are, nothing is done without the
 * audit, and no secret remains. http/login.test.ts and http/api-keys.test.ts have each refusal, browser-login.test.ts the logins.
 */
import { DatabaseSync } from 'node:sqlite';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../src/adapters/sqlite/store.ts';
import { keyIdOf } from '../../src/domain/identity/api-key.ts';
import { refs, updateRecord } from '../../src/pipeline/records/stored.ts';
import { openWalk, request, type Token, type Walk } from '../support/identity/walk.ts';
import { runTally, type Daemon } from '../support/servers/daemon.ts';

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

describe('an API key', () => {
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
      await answerOf('POST', '/v1/admin/appointments', { token, body: { email: 'eve@example.com' } }),
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
    expect(exported.split('\n').length).toBeGreaterThan(10);
    const folder = dirname(sqlitePath());
    const files = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'latin1')));
    const places = { store: files.join('\n'), log: JSON.stringify(registry.log) + registry.text, audit: exported };
    expect(walk.secrets.size).toBeGreaterThan(10);
    // what must be there, so that this test looks at the right places
    const secret = [...walk.secrets].find((each) => each.startsWith('qk_')) ?? '';
    expect(places.store).toContain(keyIdOf(secret));
    for (const [place, text] of Object.entries(places)) {
      for (const each of walk.secrets) expect(text.includes(each), `${place} has a secret: ${each}`).toBe(false);
      expect(text).not.toMatch(/qk_[0-9A-Za-z]{49}|q[sr]_[0-9A-Za-z]{30}/);
    }
  });
});
