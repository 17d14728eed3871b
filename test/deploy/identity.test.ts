/** Logins behind a proxy that ends TLS: the example in config/identity, and the same on this machine without containers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseSettings, serveMistakes } from '../../src/settings/settings.ts';
import { textOf } from '../docs/pages.ts';
import { get } from '../support/identity/browser.ts';
import { bearer, jsonOf } from '../support/identity/http-world.ts';
import { startRegistryWorld, visitorsOf, type RegistryWorld } from '../support/identity/registry-world.ts';
import { startDaemon } from '../support/servers/daemon.ts';
import { startFront, type Front } from '../support/servers/front.ts';

const serviceSchema = z.object({
  image: z.string(),
  environment: z.record(z.string(), z.string()),
  ports: z.array(z.string()).optional(),
  secrets: z.array(z.string()).optional(),
  networks: z.unknown(),
  read_only: z.literal(true),
  cap_drop: z.tuple([z.literal('ALL')]),
});
const composeSchema = z.object({
  services: z.strictObject({ proxy: serviceSchema, tally: serviceSchema }),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
  networks: z.strictObject({ tally: z.object({ ipam: z.object({ config: z.array(z.object({ subnet: z.string() })) }) }) }),
});

const createdSchema = z.object({ key: z.object({ id: z.string() }), secret: z.string() });

describe('config/identity', () => {
  const { services, secrets, networks } = composeSchema.parse(parse(textOf('config/identity/compose.yaml'), { merge: true }));
  const { proxy, tally } = services;
  const given: Readonly<Record<string, string>> = {
    TALLY_HOST: 'tally.example.com',
    TALLY_OIDC_ISSUER: 'https://id.example.com',
    TALLY_OIDC_ALLOWED: 'domain=example.com',
    TALLY_QUEUE_URL: 'https://sqs.eu-central-1.amazonaws.com/123456789012/bucket-events',
  };
  /** The environment of a service as Compose makes it. Fails for a variable that must be given and is not. */
  const environmentOf = (values: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [
        name,
        value.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, variable: string, kind: string | undefined, rest = '') => {
          const found = given[variable] ?? (kind === '-' ? rest : undefined);
          if (found === undefined) throw new Error(`${name}: ${variable} must be given`);
          return String(found);
        }),
      ]),
    );

  it('has settings with which Tally serves off loopback, with its secrets in files', () => {
    const contents = new Map([
      ['/run/secrets/oidc-client-secret', 'secret\n'],
      ['/run/secrets/index-url', 'https://tally:secret@search.internal:9200\n'],
    ]);
    // the image sets this one
    const { AWS_REGION: region, ...own }: Readonly<Record<string, string>> = {
      ...environmentOf(tally.environment),
      TALLY_HEALTH_ADDRESS: '0.0.0.0:8081',
    };
    const parsed = parseSettings(own, (path) => ({ mode: 0o400, text: contents.get(path) ?? '' }));
    if (!parsed.ok) throw new Error(parsed.mistakes.join('\n'));
    expect(serveMistakes(parsed.settings)).toEqual([]);
    expect(parsed.settings).toMatchObject({
      TALLY_PUBLIC_URL: 'https://tally.example.com',
      TALLY_OIDC_CLIENT_SECRET: 'secret',
      TALLY_OIDC_ALLOWED: ['domain=example.com'],
    });
    expect(region).toBe('eu-central-1');
    expect(Object.keys(tally.environment).filter((name) => /SECRET$|INDEX_URL$/.test(name))).toEqual([]);
    expect(tally.secrets).toEqual(Object.keys(secrets));
    expect([...contents.keys()]).toEqual(tally.secrets?.map((name) => `/run/secrets/${name}`));
  });

  it('publishes the proxy only, and trusts its address only', () => {
    expect(tally.ports).toBeUndefined();
    expect(proxy.ports).toEqual(['80:80', '443:443', '443:443/udp']);
    const { tally: placed } = z.object({ tally: z.object({ ipv4_address: z.string() }) }).parse(proxy.networks);
    expect(tally.environment['TALLY_TRUSTED_PROXIES']).toBe(`${placed.ipv4_address}/32`);
    // a second network of both would give the proxy a second address, from which it might come
    expect(tally.networks).toEqual(['tally']);
    const [{ subnet } = { subnet: '' }] = networks.tally.ipam.config;
    expect(placed.ipv4_address.startsWith(subnet.replace('0/24', ''))).toBe(true);
  });
});

// registry/caller.test.ts reads every form of the header
describe('behind a proxy that appends to X-Forwarded-For', () => {
  /** The caller is on this machine too, but not one of the proxies. */
  const CALLER = '127.0.0.7';
  /** Someone who reaches Tally past the proxy. */
  const OUTSIDER = '127.0.0.8';
  const FORGED = '203.0.113.9';

  let proxy: Front;
  let world: RegistryWorld;

  beforeAll(async () => {
    proxy = await startFront({ isTls: true });
    world = await startRegistryWorld({ TALLY_PUBLIC_URL: proxy.url, TALLY_TRUSTED_PROXIES: '127.0.0.1/32' });
    proxy.leadsTo(world.daemon.controlUrl);
  });
  afterAll(async () => {
    await world?.close();
    await proxy?.close();
  });

  /** People on another machine behind the proxy, with an address that they made up. */
  const callers = () => visitorsOf(proxy.url, world.issuer, { ca: proxy.ca, from: CALLER, headers: { 'x-forwarded-for': FORGED } });

  async function newKey(token: string, name: string): Promise<{ readonly id: string; readonly secret: string }> {
    const answer = await callers().send('POST', '/v1/api-keys', { token, body: { name } });
    expect(answer.status, answer.text).toBe(201);
    const { key, secret } = createdSchema.parse(jsonOf(answer));
    return { id: key.id, secret };
  }

  it('people log in and use API keys, and a caller who reaches Tally past the proxy is served', async () => {
    const cookies = new Map<string, string>();
    await callers().comeBack(cookies, callers().authorize());
    expect([...cookies.keys()]).toEqual(['__Host-tally-login']);
    const { token } = await callers().logIn('root');
    const { id, secret } = await newKey(token, 'past the proxy');
    expect((await callers().send('GET', '/v1/objects', { token: secret })).status).toBe(200);
    expect((await callers().send('GET', '/v1/objects', { token: `${secret}x` })).status).toBe(401);
    const past = {
      from: OUTSIDER,
      headers: { 'x-forwarded-for': `${FORGED}, ${CALLER}`, forwarded: `for=${FORGED}`, 'x-real-ip': FORGED },
    };
    const url = `${world.daemon.controlUrl}/v1/api-keys/${id}`;
    expect((await get(url, { ...past, headers: { ...past.headers, ...bearer('qk_wrong') } })).status).toBe(401);
    expect((await get(url, { ...past, method: 'DELETE', headers: { ...past.headers, ...bearer(token) } })).status).toBe(204);
  });

  // the last, because what is counted for a minute is written when the process stops
  it('the audit has the address of each caller, whatever address the caller claimed', async () => {
    await world.daemon.stop();
    const next = await startDaemon(world.env, ['serve', '--embedded']);
    const records = await world.audited(next.operator);
    await next.stop();
    const addressesOf = (event: string) =>
      [
        ...new Set(records.filter(({ eventname }) => eventname === event).map(({ sourceipaddress = 'none' }) => sourceipaddress)),
      ].toSorted();
    expect(addressesOf('ApiKeyCreate')).toEqual([CALLER]);
    // the command came from the address of the proxy itself
    expect(addressesOf('ApiKeyUse').filter((address) => address !== '127.0.0.1')).toEqual([CALLER]);
    expect(addressesOf('ApiKeyRevoke')).toEqual([OUTSIDER]);
    expect(addressesOf('AuthenticationFailed')).toEqual([CALLER, OUTSIDER]);
    expect(addressesOf('Login')).toContain(CALLER);
    expect(JSON.stringify(records)).not.toContain(FORGED);
  });
});
