/**
 * Nothing secret is written: a whole story of logins and API keys on the real program, with every log line on, and a
 * search for each of its secrets in all that was written: output, log, URLs, error answers, exports and the store.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { randomSecret } from '../../src/identity/random-texts.ts';
import { issuerSecretsOf, loginNameIn } from '../../src/identity/login.rules.ts';
import { oneOf } from '../support/breadth.ts';
import { until } from '../support/servers/aws.ts';
import { runTally, type Environment } from '../support/servers/daemon.ts';
import { raw } from '../support/servers/opensearch.ts';
import type { BrowserAnswer } from '../support/identity/browser.ts';
import { CLIENT_SECRET } from '../support/identity/provider.ts';
import { people, startRegistryWorld } from '../support/identity/registry-world.ts';
import { startFront } from '../support/servers/front.ts';
import { secretsIn, type Secrets, type Written } from '../support/identity/secret-search.ts';
import { indexKinds, openIndex, type TestIndex } from '../support/worlds/flow.ts';

type TextFields = Readonly<Record<string, string>>;

/** A registry behind a proxy, which keeps the URLs that its access log would have. */
async function startFronted(settings: Environment) {
  const front = await startFront();
  const world = await startRegistryWorld({ ...settings, TALLY_PUBLIC_URL: front.url, TALLY_TRUSTED_PROXIES: '127.0.0.1/32' });
  front.leadsTo(world.daemon.controlUrl);
  return { ...world, front };
}
type FrontedWorld = Awaited<ReturnType<typeof startFronted>>;

describe.each(oneOf(indexKinds))('a story of logins and API keys on %s', (kind) => {
  it('leaves only hashes in logs, URLs, errors, exports and the store', async () => {
    const index = await openIndex(kind);
    const world = await startFronted({ ...index.env, TALLY_LOG_LEVEL: 'trace' });
    try {
      const { secrets, inUrls, errors, admin } = await tellStory(world, () => storeText(world, index));
      await upload(world, { token: admin, key: 'cats/tom.jpg' });
      const exported = await exportsOf(world);
      const collect = async (): Promise<Written> => ({
        'the log': JSON.stringify(world.daemon.log),
        'the output': world.daemon.text,
        'the error answers': errors.join('\n'),
        'the store': await storeText(world, index),
        ...exported,
      });
      const written = await collect();
      for (const place of ['the log', 'the error answers', 'the store', 'the audit export']) {
        expect(written[place]?.length, place).toBeGreaterThan(100);
      }
      expect(secretsIn(written, secrets)).toEqual([]);
      expect(secretsIn(urlsOf(world), inUrls)).toEqual([]);
      expect(world.front.asked.length).toBeGreaterThan(20);

      // a secret that is written is found; the log has the keys of objects
      await upload(world, { token: admin, key: secrets['the secret of a key'] ?? '' });
      // the log is complete once the daemon has ended
      await world.daemon.stop();
      const found = secretsIn(await collect(), secrets);
      expect(found).toEqual(expect.arrayContaining(['the secret of a key in the log', 'the secret of a key in the store']));
      const { 'the secret of a key': _planted, ...others } = secrets;
      expect(secretsIn({ 'the log': JSON.stringify(world.daemon.log), 'the output': world.daemon.text }, others)).toEqual([]);
    } finally {
      await world.close();
      await Promise.all([world.front.close(), index.close()]);
    }
  });
});

/** Everything from a login to a logout, with what goes wrong in between. */
async function tellStory(world: FrontedWorld, readStore: () => Promise<string>) {
  const { send } = world;
  const secrets: Record<string, string> = { 'the client secret': CLIENT_SECRET };
  const errors: string[] = [];
  const refused = async (answer: Promise<BrowserAnswer>, ...statuses: readonly number[]): Promise<void> => {
    const { status, text } = await answer;
    expect(statuses, text).toContain(status);
    errors.push(text);
  };

  const verifier = randomSecret();
  const { issuerCode, ...login } = await world.logIn('alice', verifier);
  const { issuerCode: _, ...admin } = await world.logIn('root', verifier);
  // the one secret that the store has in clear: it signs logins that have begun, and gives no one any rights
  const [, loginKey = ''] = /key\\?":\\?"([0-9A-Za-z]{43})\\?"/.exec(await readStore()) ?? [];
  expect(loginKey).not.toBe('');
  const toIssuer = issuerSecretsOf(loginNameIn(login.name), loginKey);
  Object.assign(
    secrets,
    prefixed('the login', { ...login, verifier, 'verifier at the issuer': toIssuer.verifier }),
    prefixed('the login of the administrator', admin),
  );
  // these are in the URLs between the issuer and the registry, as the protocol wants it; nowhere else
  const perLogin = {
    'the code of the issuer': issuerCode,
    'the state at the issuer': toIssuer.state,
    'the nonce at the issuer': toIssuer.nonce,
  };

  // codes and tokens that fail
  const redeem = (body: object): Promise<BrowserAnswer> => send('POST', '/login/token', { body });
  await refused(redeem({ grant_type: 'authorization_code', code: randomSecret(), code_verifier: verifier }), 400);
  await refused(redeem({ grant_type: 'authorization_code', code: login.token, code_verifier: verifier }), 400);

  // keys: used, mistyped, put where an id belongs, revoked, revoked by the secret
  const [first, second] = [await world.createKey(login.token, 'first'), await world.createKey(login.token, 'second')];
  Object.assign(secrets, { 'the secret of a key': first.secret, 'the secret of another key': second.secret });
  expect((await send('GET', '/v1/objects', { token: first.secret })).status).toBe(200);
  expect((await send('GET', '/v1/session', { token: second.secret })).status).toBe(200);
  const typo = `${first.secret.slice(0, -1)}${first.secret.endsWith('a') ? 'b' : 'a'}`;
  for (const token of [typo, first.secret.slice(0, 40), first.secret.slice(3), login.token.slice(0, -1)]) {
    await refused(send('GET', '/v1/objects', { token }), 401);
  }
  await refused(send('DELETE', `/v1/admin/api-keys/${second.id}`, { token: second.secret }), 403);
  // its URL has it, so it is no secret of the story otherwise
  const misplaced = (await world.createKey(login.token, 'misplaced')).secret;
  secrets['the key in the place of an id'] = misplaced;
  await refused(send('DELETE', `/v1/api-keys/${misplaced}`, { token: login.token }), 404);
  await refused(send('GET', `/v1/admin/api-keys/${misplaced}`, { token: admin.token }), 404);
  await refused(send('POST', '/v1/buckets', { token: admin.token, body: { bucket: second.secret } }), 400, 404);
  await refused(
    send('PATCH', '/v1/admin/users/carol@example.com', { token: admin.token, body: { role: 'admin', more: second.secret } }),
    400,
  );
  expect(
    (await send('POST', '/v1/dead-letters/discard', { token: admin.token, body: { ids: [first.secret] } })).status,
  ).toBeGreaterThanOrEqual(400);
  expect((await send('DELETE', `/v1/api-keys/${first.id}`, { token: login.token })).status).toBe(204);
  expect((await send('POST', '/v1/api-keys/revoke', { body: { secret: second.secret } })).status).toBe(204);
  // within 5 s
  await until('the revoked key is refused', async () => (await send('GET', '/v1/objects', { token: second.secret })).status === 401);
  await refused(send('GET', '/v1/objects', { token: second.secret }), 401);

  // a browser, and what its cookie may not do
  const cookies = new Map<string, string>();
  world.issuer.personIs(people.alice);
  expect((await world.comeBack(cookies, `${world.url}/login/authorize?return_to=/v1/session`)).status).toBe(303);
  const [cookie = ''] = cookies.values();
  secrets['the cookie of the browser'] = cookie;
  expect((await send('GET', '/v1/session', { cookies: new Map(cookies) })).status).toBe(200);
  await refused(send('POST', '/v1/api-keys', { cookies: new Map(cookies), body: { name: 'by a foreign page' } }), 403);
  await refused(send('GET', '/v1/session', { cookies: new Map(cookies), token: login.token }), 400);

  // logins that fail
  world.issuer.personIs(people.mallory);
  const strange = await world.comeBack(new Map(), `${world.url}/login/authorize?return_to=/`);
  errors.push(strange.text);
  await refused(send('GET', '/login/callback?state=foreign&code=foreign'), 400);
  const { issuerCode: __, ...spoilt } = await world.logIn('alice', verifier);
  Object.assign(secrets, prefixed('the replayed login', spoilt));
  const replay = {
    grant_type: 'authorization_code',
    code: spoilt.code,
    code_verifier: verifier,
    redirect_uri: 'http://127.0.0.1:49152/callback',
  };
  await refused(redeem(replay), 400);
  await refused(send('GET', '/v1/session', { token: spoilt.token }), 401);

  // requests that are none
  await refused(send('POST', '/login/token', { headers: { 'content-type': 'application/json' }, token: login.token }), 400);
  await refused(send('POST', `/v1/objects`, { token: login.token, body: { secret: login.token } }), 405);
  await refused(send('POST', '/v1/api-keys', { token: login.token, body: { name: `\u202e${login.token}` } }), 400);
  expect((await send('POST', '/login/logout', { token: login.token })).status).toBe(204);
  await refused(send('GET', '/v1/session', { token: login.token }), 401);
  const { 'the key in the place of an id': _inUrl, ...urlSecrets } = secrets;
  return { secrets: { ...secrets, ...perLogin } as Secrets, inUrls: urlSecrets, errors, admin: admin.token };
}

function prefixed(whose: string, secrets: object): Record<string, string> {
  return Object.fromEntries(Object.entries(secrets as TextFields).map(([name, secret]) => [`${name} of ${whose}`, secret]));
}

/** The exports of an operator on this machine. */
async function exportsOf({ env, operator }: FrontedWorld): Promise<Written> {
  const audit = await runTally(['admin', 'audit', '--jsonl'], operator);
  expect(audit, audit.stderr).toMatchObject({ code: 0 });
  const config = await runTally(['config'], env);
  return {
    'the audit export': audit.stdout,
    'the output of commands': [audit, config].map(({ stdout, stderr }) => stdout + stderr).join('\n'),
  };
}

/** All that is stored: every document of the indices, or the bytes of every file. */
async function storeText({ folder }: FrontedWorld, { env }: TestIndex): Promise<string> {
  const prefix = env['TALLY_INDEX_PREFIX'];
  if (prefix !== undefined) {
    await raw('POST', `/${prefix}-*/_refresh?expand_wildcards=all`);
    const all = await raw('POST', `/${prefix}-*/_search?expand_wildcards=all`, { size: 10_000, query: { match_all: {} } });
    expect(all.status).toBe(200);
    return JSON.stringify(all.body);
  }
  const folders = [join(folder, 'data'), join(env['TALLY_INDEX_URL']?.replace(/^sqlite:/, '') ?? '', '..')];
  const texts = await Promise.all(
    folders.map(async (each) => {
      const files = (await readdir(each, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
      return Promise.all(
        files.map(async ({ parentPath, name }) => `${name}\n${(await readFile(join(parentPath, name))).toString('latin1')}`),
      );
    }),
  );
  return texts.flat().join('\n');
}

function urlsOf({ front, issuer }: FrontedWorld): Written {
  return { 'URLs at the proxy': front.asked.join('\n'), 'URLs at the issuer': issuer.asked.join('\n') };
}

/** Uploads an object, and resolves when a search finds it. */
async function upload({ daemon, send }: FrontedWorld, { token, key }: { readonly token: string; readonly key: string }): Promise<void> {
  expect((await fetch(`${daemon.embeddedUrl}/demo/${key}`, { method: 'PUT', body: 'text' })).status).toBe(200);
  await until('the object is found', async () => (await send('GET', '/v1/objects?bucket=demo', { token })).text.includes(key));
}
