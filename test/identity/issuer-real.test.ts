import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OAuth2Server } from 'oauth2-mock-server';
import { createIssuer } from '../../src/identity/issuer.ts';
import { identityOf } from '../../src/identity/claims.rules.ts';
import { issuerSecretsOf } from '../../src/identity/login.rules.ts';
import { randomSecret } from '../../src/identity/random-texts.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { get } from '../support/identity/browser.ts';
import { CLIENT_ID, CLIENT_SECRET, startProvider, type StartedProvider } from '../support/identity/provider.ts';

const REDIRECT = 'http://127.0.0.1:8080/login/callback';
const signal = new AbortController().signal;
const newRequest = () => ({ ...issuerSecretsOf(randomSecret(), randomSecret()), redirectUri: REDIRECT });
const scopes = 'openid email profile';
// the issuers of these tests state the time of this machine
const clock = { ...createFakeClock(), nowMs: () => Date.now() };

describe('a real issuer (oidc-provider)', () => {
  let provider: StartedProvider;
  beforeAll(async () => {
    provider = await startProvider([REDIRECT]);
  });
  afterAll(() => provider.close());

  const issuerWith = (more: object = {}) =>
    createIssuer({ issuer: provider.url, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, scopes, clock, ...more });

  async function come(issuer = issuerWith(), request = newRequest()) {
    const back = await provider.authorize(await issuer.authorizationUrl(request, signal));
    return { issuer, request, back: new URL(back) };
  }

  it('states who logged in, with the claims of its userinfo', async () => {
    const { issuer, request, back } = await come();
    expect(back.href.startsWith(`${REDIRECT}?`)).toBe(true);
    const statement = await issuer.redeem(request, back, signal);
    expect(statement.issuer).toBe(provider.url);
    expect(statement.claims).toMatchObject({ sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] });
    // it gives each code once
    await expect(issuer.redeem(request, back, signal)).rejects.toMatchObject({
      code: 'login.refused',
      message: expect.stringContaining('invalid_grant'),
    });
  });

  it('does not accept the answer to another request, or of another issuer', async () => {
    const { issuer, request, back } = await come();
    const other = newRequest();
    await expect(issuer.redeem({ ...request, state: other.state }, back, signal)).rejects.toMatchObject({ code: 'login.refused' });
    // mix-up
    const another = new URL(back);
    another.searchParams.set('iss', 'https://evil.example');
    await expect(issuer.redeem(request, another, signal)).rejects.toMatchObject({ code: 'login.refused' });
    await expect(issuer.redeem({ ...request, verifier: other.verifier }, back, signal)).rejects.toMatchObject({ code: 'login.refused' });
  });

  it('is named when it refuses the login, with its reason', async () => {
    const { issuer, request } = await come();
    const denied = new URL(
      `${REDIRECT}?${new URLSearchParams({ error: 'access_denied', error_description: 'not\u001b[2J you, call 555-0100', state: request.state, iss: provider.url }).toString()}`,
    );
    await expect(issuer.redeem(request, denied, signal)).rejects.toMatchObject({
      code: 'login.refused',
      message: 'the issuer refused the login: access_denied',
    });
  });

  it('refuses a registry with a wrong secret, which is a fault of the settings', async () => {
    const { issuer, request, back } = await come(issuerWith({ clientSecret: 'wrong' }));
    await expect(issuer.redeem(request, back, signal)).rejects.toMatchObject({
      code: 'issuer.refused',
      reason: expect.stringContaining('invalid_client'),
    });
  });

  it('with another address in its discovery document is not used', async () => {
    const issuer = createIssuer({ issuer: provider.url.replace('127.0.0.1', 'localhost'), clientId: CLIENT_ID, scopes, clock });
    await expect(issuer.authorizationUrl(newRequest(), signal)).rejects.toMatchObject({ code: 'issuer.unreachable' });
  });
});

it('an issuer that does not answer is a fault that names its address', async () => {
  const issuer = createIssuer({ issuer: 'http://127.0.0.1:9', clientId: CLIENT_ID, scopes, clock });
  await expect(issuer.authorizationUrl(newRequest(), signal)).rejects.toMatchObject({
    code: 'issuer.unreachable',
    reason: expect.stringMatching(/127\.0\.0\.1:9.*ECONNREFUSED/),
  });
});

interface Token {
  readonly header: Record<string, unknown>;
  readonly payload: Record<string, unknown>;
}

const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
const decoded = (token: string): Token => {
  const [header = '', payload = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  return { header: JSON.parse(header), payload: JSON.parse(payload) };
};

describe('a malicious or broken issuer (oauth2-mock-server)', () => {
  let server: OAuth2Server;
  let url: string;
  /** Changes the claims of the ID token before it is signed. */
  let claims: (payload: Record<string, unknown>) => void;
  /** Replaces the signed ID token. */
  let token: (idToken: string) => string;
  let userInfo: Record<string, unknown>;

  beforeEach(async () => {
    server = new OAuth2Server();
    await server.issuer.keys.generate('RS256');
    await server.start(0, '127.0.0.1');
    url = server.issuer.url ?? '';
    claims = (payload) => Object.assign(payload, { email: 'a@example.com', email_verified: true });
    token = (idToken) => idToken;
    userInfo = { sub: 'johndoe' };
    server.service.on('beforeTokenSigning', ({ payload }: Token) => {
      if (payload['aud'] !== undefined) claims(payload);
    });
    server.service.on('beforeResponse', ({ body }: { body: Record<string, unknown> }) => {
      body['id_token'] = token(String(body['id_token']));
    });
    server.service.on('beforeUserinfo', (answer: { body: Record<string, unknown> }) => {
      answer.body = userInfo;
    });
  });
  afterEach(() => server.stop());

  const issuer = () => createIssuer({ issuer: url, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, scopes, clock });

  async function statementOf(at = issuer()) {
    const request = newRequest();
    const { location = '' } = await get(await at.authorizationUrl(request, signal));
    return at.redeem(request, new URL(location), signal);
  }

  const refused = (text: RegExp) => ({ code: 'login.refused', message: expect.stringMatching(text) });

  /** Claims that state a time are made when the token is signed, which may be long after the tests were collected. */
  type Changes = Record<string, unknown> | (() => Record<string, unknown>);
  const nowS = (): number => Math.floor(Date.now() / 1_000);

  it('is believed while it does everything right', async () => {
    expect(await statementOf()).toMatchObject({ issuer: url, claims: { sub: 'johndoe', email: 'a@example.com', email_verified: true } });
  });

  it.each<[string, Changes, RegExp]>([
    ['another nonce', { nonce: 'of another login' }, /nonce/],
    ['an empty subject', { sub: '' }, /subject/],
    ['an expiry two minutes ago', () => ({ exp: nowS() - 120 }), /exp/],
    ['a beginning in five minutes', () => ({ nbf: nowS() + 300 }), /nbf/],
  ])('that states %s is refused', async (_, changes, text) => {
    claims = (payload) => Object.assign(payload, typeof changes === 'function' ? changes() : changes);
    await expect(statementOf()).rejects.toMatchObject(refused(text));
  });

  it.each<[string, () => Record<string, unknown>]>([
    ['30 s behind', () => ({ exp: nowS() - 30 })],
    ['30 s ahead', () => ({ iat: nowS() + 30, nbf: nowS() + 30 })],
  ])('whose clock is %s is believed', async (_, changes) => {
    claims = (payload) => Object.assign(payload, changes());
    expect(await statementOf()).toHaveProperty('claims.sub', 'johndoe');
  });

  it.each<[string, (idToken: string) => string]>([
    [
      'changed after it was signed',
      (idToken) => {
        const [header = '', , signature = ''] = idToken.split('.');
        return `${header}.${encoded({ ...decoded(idToken).payload, email: 'root@example.com' })}.${signature}`;
      },
    ],
    ['missing', () => ''],
  ])('with an ID token %s is refused', async (_, change) => {
    token = change;
    await expect(statementOf()).rejects.toMatchObject({ code: 'login.refused' });
  });

  it('may rotate its keys between two logins, and within one', async () => {
    const at = issuer();
    await statementOf(at);
    await server.issuer.keys.generate('RS256');
    // the first key is used in turn with the second
    for (let login = 0; login < 3; login += 1) expect(await statementOf(at)).toHaveProperty('claims.sub', 'johndoe');
  });

  it('vouches in the userinfo for the address that it states there, and for no other', async () => {
    userInfo = { sub: 'johndoe', email: 'b@example.com', email_verified: true };
    claims = (payload) => Object.assign(payload, { email: 'root@example.com' });
    const verifiedOf = async () => {
      const statement = await statementOf();
      return identityOf(statement.claims, { issuer: statement.issuer, trustEmail: false });
    };
    expect(await verifiedOf()).toMatchObject({ email: 'root@example.com', emailVerified: false });
    claims = (payload) => Object.assign(payload, { email: 'b@example.com' });
    expect(await verifiedOf()).toMatchObject({ email: 'b@example.com', emailVerified: true });
    claims = () => undefined;
    expect(await verifiedOf()).toMatchObject({ email: 'b@example.com', emailVerified: true });
    // what the token says without an address is about none
    userInfo = { sub: 'johndoe', email: 'b@example.com' };
    claims = (payload) => Object.assign(payload, { email_verified: true });
    expect(await verifiedOf()).toMatchObject({ email: 'b@example.com', emailVerified: false });
  });

  it('whose userinfo is about another person is refused', async () => {
    userInfo = { sub: 'root', groups: ['admins'] };
    await expect(statementOf()).rejects.toMatchObject({ code: 'login.refused' });
  });

  it('that sends more than a mebibyte is given up', async () => {
    server.service.on('beforeWellKnownOpenIdConfiguration', ({ body }: { body: Record<string, unknown> }) => {
      body['padding'] = 'x'.repeat(1_100_000);
    });
    await expect(issuer().authorizationUrl(newRequest(), signal)).rejects.toMatchObject({
      code: 'issuer.unreachable',
      reason: expect.stringContaining('1048576'),
    });
  });

  it('that redirects is not followed', async () => {
    server.service.addRoute('GET', '/elsewhere/.well-known/openid-configuration', (_request, response) => {
      response.writeHead(302, { location: `${url}/.well-known/openid-configuration` }).end();
    });
    const at = createIssuer({ issuer: `${url}/elsewhere`, clientId: CLIENT_ID, scopes, clock });
    await expect(at.authorizationUrl(newRequest(), signal)).rejects.toMatchObject({
      code: 'issuer.unreachable',
      reason: expect.stringContaining('(status 302)'),
    });
  });
});
