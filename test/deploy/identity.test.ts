/** The example of logins behind a proxy that ends TLS. What Tally makes of the proxy's headers: registry/caller.test.ts. */
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseSettings, serveMistakes } from '../../src/settings/settings.ts';
import { textOf } from '../docs/pages.ts';

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
