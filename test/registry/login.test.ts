import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { challengeOf } from '../../src/identity/tokens.rules.ts';
import { userIdOf } from '../../src/identity/user.rules.ts';
import { ISSUER } from '../support/identity/fake-issuer.ts';
import {
  backFromIssuer,
  bearer,
  jsonOf,
  ownPage,
  openHttpWorld,
  toConsent,
  visit,
  type HttpWorld,
} from '../support/identity/http-world.ts';
import { REDIRECT, VERIFIER } from '../support/identity/world.ts';

const json = { 'content-type': 'application/json' };
const client = {
  code_challenge: challengeOf(VERIFIER),
  code_challenge_method: 'S256',
  state: 'mine',
  redirect_uri: REDIRECT,
  machine: 'laptop',
};
const authorizePath = (query: Record<string, string>) => `/login/authorize?${new URLSearchParams(query).toString()}`;

/** From the first address to the consent page, as a browser. */
const consentOf = async (world: HttpWorld, query: Record<string, string> = client) =>
  toConsent(world, await backFromIssuer(world, authorizePath(query)));

const redeem = (world: HttpWorld, body: object) => world.send('POST', '/login/token', { headers: json, body: JSON.stringify(body) });

/** A browser that is logged in. */
const browserOf = (world: HttpWorld) => backFromIssuer(world, authorizePath({ return_to: '/jobs?x=1' }));

describe('the login of a program', () => {
  it('leads from its browser to a token with which it is known', async () => {
    const world = await openHttpWorld();
    const { page, decide } = await consentOf(world);
    expect(page.text).toContain('alice@example.com');
    expect(page.text).toContain('laptop');
    const { redirect } = jsonOf(await decide(true)) as { redirect: string };
    const { code = '', state, iss } = Object.fromEntries(new URL(redirect).searchParams);
    expect([redirect.startsWith(`${REDIRECT}?`), state, iss]).toEqual([true, 'mine', world.url]);
    const answer = await redeem(world, { grant_type: 'authorization_code', code, code_verifier: VERIFIER, redirect_uri: REDIRECT });
    expect(answer.status).toBe(200);
    expect(answer.headers['cache-control']).toBe('no-store');
    const issued = jsonOf(answer) as { access_token: string };
    expect(issued).toEqual({ access_token: expect.stringMatching(/^qs_[0-9A-Za-z]{43}$/), token_type: 'Bearer', expires_in: 604_800 });
    const session = await world.send('GET', '/v1/session', { headers: bearer(issued.access_token) });
    expect(jsonOf(session)).toEqual({
      user: { id: userIdOf(ISSUER, 's-alice'), email: 'alice@example.com', email_verified: true },
      role: 'user',
      scopes: ['read'],
      kind: 'session',
      reads: ['*'],
      catalog_url: world.url,
      version: '1.67.0',
    });
    expect((await world.send('POST', '/login/logout', { headers: bearer(issued.access_token) })).status).toBe(204);
    expect((await world.send('GET', '/v1/session', { headers: bearer(issued.access_token) })).status).toBe(401);
    expect(world.audit.records.map(({ eventname }) => eventname)).toEqual(['Login', 'Logout']);
  });

  it.each<[string, Record<string, string>]>([
    ['a page of another site', { ...json, 'x-tally-csrf': '1', origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['no origin at all', { ...json, 'x-tally-csrf': '1' }],
    ['a form, which cannot send the header', { ...json, 'sec-fetch-site': 'same-origin' }],
    ['a page of the same site on another host', { ...json, 'x-tally-csrf': '1', 'sec-fetch-site': 'same-site' }],
  ])('is not permitted by %s', async (_, headers) => {
    const world = await openHttpWorld();
    const { decide } = await consentOf(world);
    expect(jsonOf(await decide(true, headers))).toMatchObject({ status: 403, code: 'request.forbidden-origin' });
    expect((await decide(true)).status).toBe(200);
  });

  it.each<[string, Record<string, string>]>([
    ['a foreign redirect', { ...client, redirect_uri: 'https://evil.example/callback' }],
    ['no challenge', { state: 'mine', redirect_uri: REDIRECT }],
    ['a redirect and a code to copy', { ...client, no_browser: 'true' }],
  ])('is not begun with %s', async (_, query) => {
    const world = await openHttpWorld();
    const answer = await world.send('GET', authorizePath(query));
    expect([answer.status, jsonOf(answer)['code'], answer.headers['set-cookie']]).toEqual([400, 'request.invalid', undefined]);
    expect(await world.store.state.count('login')).toBe(0);
  });

  it('that fails for a person shows a page, and for a program a problem document', async () => {
    const world = await openHttpWorld();
    const expired = await world.send('GET', '/login/consent', { headers: visit });
    expect(expired.status).toBe(400);
    expect(expired.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(expired.text).toContain('log in again');
    expect(jsonOf(await world.send('GET', '/login/consent'))).toMatchObject({ code: 'login.expired' });
    world.issuer.failWith(new FaultError('issuer.unreachable', 'GET https://id: <script>alert(1)</script>'));
    const cookies = new Map<string, string>();
    const begun = await world.send('GET', authorizePath({ return_to: '/' }), { cookies });
    const failed = await world.send('GET', world.issuer.answerTo(begun.location ?? ''), { cookies, headers: visit });
    expect(failed.status).toBe(503);
    expect(failed.text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(failed.text).toContain('TALLY_OIDC_ISSUER');
  });
});

it('the pages permit nothing but their own script and style, are framed by no page, and show texts from outside as they are', async () => {
  const world = await openHttpWorld();
  world.issuer.personIs({ sub: '"><img src=x>\u202e' });
  const { page } = await consentOf(world, { ...client, machine: `<b>&"'` });
  const policy = String(page.headers['content-security-policy']);
  expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self'; /);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe');
  expect(page.headers['cache-control']).toBe('no-store');
  // what the policy permits is what the page has
  const { createHash } = await import('node:crypto');
  for (const [, source = ''] of page.text.matchAll(/<(?:script|style)>([^]*?)<\/(?:script|style)>/g)) {
    expect(policy).toContain(createHash('sha256').update(source).digest('base64'));
  }
  expect(page.text).not.toMatch(/ on\w+=|style=|javascript:|<img|<b>|\u202e/i);
  expect(page.text).toContain('\\u{202e}');
  expect(page.text).toContain('&lt;b&gt;&amp;&quot;&#39;');
});

describe('the session of a browser', () => {
  it('is a cookie that scripts do not see, set at the return to a page of the registry, and ends with the logout', async () => {
    const world = await openHttpWorld();
    const { cookies, answered } = await browserOf(world);
    expect([answered.status, answered.location]).toEqual([303, '/jobs?x=1']);
    expect([answered.headers['set-cookie']].flat().at(-1)).toMatch(
      new RegExp(`^tally-${world.port}=qb_[0-9A-Za-z]{43}; Path=/; HttpOnly; SameSite=Lax; Max-Age=43200$`),
    );
    expect(jsonOf(await world.send('GET', '/v1/session', { cookies }))).toMatchObject({
      kind: 'session',
      user: { email: 'alice@example.com' },
    });
    const before = new Map(cookies);
    const { 'content-type': _, ...own } = ownPage(world);
    expect((await world.send('POST', '/login/logout', { cookies, headers: own })).status).toBe(204);
    expect([...cookies].filter(([name]) => name === `tally-${world.port}`)).toEqual([]);
    expect((await world.send('GET', '/v1/session', { cookies: before })).status).toBe(401);
    expect(world.audit.records.map(({ eventname }) => eventname)).toEqual(['Login', 'Logout']);
  });

  it('ends the session that the browser had before, and no other one', async () => {
    const world = await openHttpWorld();
    const { cookies } = await browserOf(world);
    const first = new Map(cookies);
    const { cookies: elsewhere } = await browserOf(world);
    const begun = await world.send('GET', authorizePath({ return_to: '/' }), { cookies });
    expect((await world.send('GET', '/v1/session', { cookies: first })).status).toBe(200);
    await world.send('GET', world.issuer.answerTo(begun.location ?? ''), { cookies, headers: visit });
    expect((await world.send('GET', '/v1/session', { cookies: first })).status).toBe(401);
    expect((await world.send('GET', '/v1/session', { cookies })).status).toBe(200);
    expect((await world.send('GET', '/v1/session', { cookies: elsewhere })).status).toBe(200);
    // a cookie with another secret of the same session ends nothing
    const own = cookies.get(`tally-${world.port}`) ?? '';
    const forged = new Map([[`tally-${world.port}`, `${own.slice(0, -1)}${own.endsWith('A') ? 'B' : 'A'}`]]);
    const third = await world.send('GET', authorizePath({ return_to: '/' }), { cookies: forged });
    await world.send('GET', world.issuer.answerTo(third.location ?? ''), { cookies: forged, headers: visit });
    expect((await world.send('GET', '/v1/session', { cookies })).status).toBe(200);
  });

  it('over https belongs to this host alone', async () => {
    const world = await openHttpWorld({ publicUrl: 'https://tally.example.com', trustedProxies: ['127.0.0.1/32'] });
    const { answered } = await browserOf(world);
    expect([answered.headers['set-cookie']].flat().at(-1)).toMatch(
      /^__Host-tally=qb_\w+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=43200; Secure$/,
    );
    expect(answered.headers['strict-transport-security']).toBe('max-age=31536000');
    // whatever a proxy says of the address, the settings are believed
    const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http', host: 'evil.example' };
    const begun = await world.send('GET', authorizePath(client), { headers: forwarded });
    expect(new URL(begun.location ?? '').searchParams.get('redirect_uri')).toBe('https://tally.example.com/login/callback');
    expect(String(begun.headers['set-cookie'])).toMatch(/^__Host-tally-login=.*Secure$/);
  });

  it('changes something only from a page of the registry', async () => {
    const world = await openHttpWorld();
    // logs an administrator in, who is the person of the browser then
    await world.tokenOf('admin');
    const { cookies } = await browserOf(world);
    const pause = (headers: Record<string, string>) => world.send('POST', '/v1/buckets/photos/reindex', { cookies, headers });
    const own = { 'x-tally-csrf': '1', 'sec-fetch-site': 'same-origin' };
    for (const headers of [
      {},
      { 'sec-fetch-site': 'same-origin' },
      { 'x-tally-csrf': '1' },
      { ...own, 'sec-fetch-site': 'same-site' },
      { ...own, origin: 'null' },
    ]) {
      expect(jsonOf(await pause(headers))).toMatchObject({ status: 403, code: 'request.forbidden-origin' });
    }
    expect(world.fake.asked).toEqual([]);
    expect((await pause(own)).status).toBe(202);
    expect((await pause({ 'x-tally-csrf': '1', origin: world.url })).status).toBe(202);
    const text = await world.send('POST', '/v1/buckets', { cookies, headers: { ...own, 'content-type': 'text/plain' }, body: '{}' });
    expect(text.status).toBe(415);
  });

  it('is no bearer token, and the token of a program is no cookie; nor are both sent together', async () => {
    const world = await openHttpWorld();
    const { cookies } = await browserOf(world);
    const cookie = cookies.get(`tally-${world.port}`) ?? '';
    expect((await world.send('GET', '/v1/session', { headers: bearer(cookie) })).status).toBe(401);
    expect((await world.send('GET', '/v1/session', { headers: bearer(cookie.replace('qb_', 'qs_')) })).status).toBe(401);
    expect((await world.send('GET', '/v1/session', { cookies, headers: bearer('qs_x') })).status).toBe(400);
    const token = await world.tokenOf('user');
    for (const sent of [token, token.replace('qs_', 'qb_')]) {
      const answer = await world.send('GET', '/v1/session', { cookies: new Map([[`tally-${world.port}`, sent]]) });
      expect(answer.status).toBe(401);
    }
  });

  it('begins under the name of the registry, so that its cookies come back', async () => {
    const world = await openHttpWorld();
    const headers = { host: `localhost:${world.port}` };
    const answer = await world.send('GET', authorizePath({ return_to: '/' }), { headers });
    expect([answer.status, answer.location]).toEqual([302, `${world.url}/login/authorize?return_to=%2F`]);
    // clients find it in the answers to their logins
    expect(jsonOf(await world.send('GET', '/config.json', { headers }))).toMatchObject({ registryUrl: world.url });
  });
});

it('a credential that is not valid is counted by its address; a cookie that has ended is not', async () => {
  const world = await openHttpWorld();
  await world.send('GET', '/v1/buckets', { headers: bearer(`qs_${'0'.repeat(43)}`) });
  await redeem(world, { grant_type: 'authorization_code', code: 'x'.repeat(44), code_verifier: VERIFIER });
  await world.send('GET', '/v1/buckets', { headers: { cookie: `tally-${world.port}=qb_${'0'.repeat(43)}` } });
  expect(world.failures).toEqual(
    ['session token not valid', 'authorization_code not valid'].map((reason) => ({
      address: '127.0.0.1',
      reason,
    })),
  );
});

it('the address of the registry is in /config.json, which any page may read and keep for a minute', async () => {
  const world = await openHttpWorld({ publicUrl: 'https://tally.example.com', catalogUrl: 'https://catalog.example.com' });
  const answer = await world.send('GET', '/config.json', {
    headers: { origin: 'https://any.example', 'x-forwarded-host': 'evil.example' },
  });
  expect(jsonOf(answer)).toEqual({
    registryUrl: 'https://tally.example.com',
    catalogUrl: 'https://catalog.example.com',
    version: '1.67.0',
  });
  expect(answer.headers).toMatchObject({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=60' });
  const other = await world.send('GET', '/openapi.json', { headers: { origin: 'https://any.example' } });
  expect([other.status, other.headers['access-control-allow-origin']]).toEqual([403, undefined]);
});
