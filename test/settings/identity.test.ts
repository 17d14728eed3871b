import { describe, expect, it } from 'vitest';
import { loginRulesOf } from '../../src/settings/identity.ts';
import { serveMistakes } from '../../src/settings/settings.ts';
import { mistakesOf, settingsOf } from './parsed.ts';

const identity = {
  TALLY_OIDC_ISSUER: 'https://id.example.com/tenant',
  TALLY_OIDC_CLIENT_ID: 'tally',
  TALLY_OIDC_ALLOWED: 'domain=example.com',
};

describe('the settings of identity', () => {
  it('become the rules of login', () => {
    const settings = settingsOf({
      ...identity,
      TALLY_OIDC_ALLOWED: 'domain=Example.com, claim:https://x.example/groups=a=b',
      TALLY_OIDC_ADMIN_CLAIM: 'groups=admins',
      TALLY_OIDC_ADMIN_EMAILS: 'Root@Example.com',
    });
    expect(loginRulesOf(settings)).toEqual({
      issuer: 'https://id.example.com/tenant',
      groupsClaim: 'groups',
      trustsEmail: false,
      allowed: [
        { kind: 'domain', domain: 'example.com' },
        { kind: 'claim', text: 'https://x.example/groups=a=b', path: 'https://x.example/groups', value: 'a=b' },
      ],
      adminClaim: { kind: 'claim', text: 'groups=admins', path: 'groups', value: 'admins' },
      adminEmails: ['root@example.com'],
    });
  });

  it.each([
    ['TALLY_OIDC_ISSUER', 'http://id.example.com', 'https'],
    ['TALLY_OIDC_ISSUER', 'https://user:secret@id.example.com', 'without user'],
    ['TALLY_OIDC_ISSUER', 'https://id.example.com?x=1', 'query'],
    ['TALLY_OIDC_ISSUER', 'https://login.microsoftonline.com/{tenantid}/v2.0', 'one tenant'],
    ['TALLY_OIDC_ISSUER', 'id.example.com', 'https URL'],
    ['TALLY_OIDC_ALLOWED', 'domain', 'must be of domain=example.com'],
    ['TALLY_OIDC_ALLOWED', 'everyone', 'must be of domain=example.com'],
    ['TALLY_OIDC_ADMIN_CLAIM', 'groups', 'PATH=VALUE'],
    ['TALLY_OIDC_ADMIN_EMAILS', 'root', 'e-mail addresses'],
    ['TALLY_PUBLIC_URL', 'http://tally.example.com', 'https, except on loopback'],
    ['TALLY_PUBLIC_URL', 'https://tally.example.com/app', 'without a path'],
    ['TALLY_PUBLIC_URL', 'https://a:b@tally.example.com', 'without a path'],
    ['TALLY_CATALOG_URL', 'ftp://x', 'https://HOST'],
    ['TALLY_TRUSTED_PROXIES', '10.0.0.1', 'prefix length'],
    ['TALLY_TRUSTED_PROXIES', '10.0.0.0/33', 'prefix length'],
    ['TALLY_TRUSTED_PROXIES', '127.0.0.1/32,::/0', 'could claim any address'],
    ['TALLY_TRUSTED_PROXIES', '172.16.0.0/12', 'could claim any address'],
    ['TALLY_TRUSTED_PROXIES', 'fd00::/8', 'could claim any address'],
    ['TALLY_TRUSTED_PROXIES', '::ffff:0.0.0.0/96', 'could claim any address'],
    ['TALLY_TRUSTED_PROXIES', '::/64', 'could claim any address'],
    ['TALLY_TRUSTED_PROXIES', 'proxy/8', 'prefix length'],
  ])('%s refuses %s and says why', (name, value, reason) => {
    expect(mistakesOf({ ...identity, [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name}: .*${reason}`))]);
    expect(mistakesOf({ ...identity, [name]: value }).join(' ')).not.toContain('secret');
  });

  it.each([
    ['http://127.0.0.1:9000', []],
    ['http://localhost:9000/realm', []],
    ['https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0', []],
  ])('take the issuer %s', (TALLY_OIDC_ISSUER, mistakes) => {
    expect(mistakesOf({ ...identity, TALLY_OIDC_ISSUER })).toEqual(mistakes);
  });

  it.each(['https://accounts.google.com', 'https://login.microsoftonline.com/common/v2.0'])('never let everyone in from %s', (issuer) => {
    const open = { ...identity, TALLY_OIDC_ISSUER: issuer, TALLY_OIDC_ALLOWED: 'any', TALLY_OIDC_TRUST_EMAIL: 'true' };
    expect(mistakesOf(open)).toEqual([
      expect.stringMatching(/^TALLY_OIDC_ALLOWED: must not be any/),
      expect.stringMatching(/^TALLY_OIDC_TRUST_EMAIL: must be false/),
    ]);
    expect(mistakesOf({ ...identity, TALLY_OIDC_ISSUER: issuer })).toEqual([]);
  });

  it('mean nothing without an issuer, which is a mistake', () => {
    const { TALLY_OIDC_ISSUER: _, ...rest } = identity;
    expect(mistakesOf(rest)).toEqual([
      'TALLY_OIDC_CLIENT_ID: needs TALLY_OIDC_ISSUER, which is not set',
      'TALLY_OIDC_ALLOWED: needs TALLY_OIDC_ISSUER, which is not set',
    ]);
  });
});

describe('off loopback', () => {
  const serving = { TALLY_INDEX_URL: 'sqlite:/x', TALLY_QUEUE_URL: 'https://sqs/1/q', TALLY_HTTP_ADDRESS: '0.0.0.0:8080' };
  const proxied = { TALLY_PUBLIC_URL: 'https://tally.example.com', TALLY_TRUSTED_PROXIES: '10.20.30.0/28, fd00:20::/64' };

  it('serving needs identity, a public address and trusted proxies, and says what to set', () => {
    const mistakes = serveMistakes(settingsOf(serving));
    expect(mistakes.map((text) => text.split(':')[0])).toEqual([
      'TALLY_HTTP_ADDRESS',
      'TALLY_OIDC_ISSUER',
      'TALLY_PUBLIC_URL',
      'TALLY_TRUSTED_PROXIES',
    ]);
    expect(serveMistakes(settingsOf({ ...serving, ...identity, ...proxied }))).toEqual([]);
  });

  it.each(Object.keys(proxied))('serving needs %s', (name) => {
    const { [name]: _, ...rest }: Readonly<Record<string, string>> = { ...serving, ...identity, ...proxied };
    expect(serveMistakes(settingsOf(rest)).map((text) => text.split(':')[0])).toEqual(['TALLY_HTTP_ADDRESS', name]);
  });

  it('is no address of loopback, and matters only to the role http', () => {
    for (const TALLY_HTTP_ADDRESS of ['127.0.0.1:8080', 'localhost:8080', '[::1]:8080'])
      expect(serveMistakes(settingsOf({ ...serving, TALLY_HTTP_ADDRESS }))).toEqual([]);
    expect(serveMistakes(settingsOf({ ...serving, TALLY_ROLES: 'ingest' }))).toEqual([]);
  });
});
