/**
 * What the compose files and the systemd unit say, without running them: deploy.test.ts runs compose.yaml and the unit in
 * `npm run test:long`.
 */
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseSettings, serveMistakes, type Settings } from '../../src/settings/settings.ts';
import { textOf } from '../docs/pages.ts';
import { exitCodes } from '../../src/cli/errors.ts';

const composeSchema = z.object({
  services: z.looseObject({
    tally: z.object({
      environment: z.record(z.string(), z.coerce.string()),
      read_only: z.literal(true),
      cap_drop: z.tuple([z.literal('ALL')]),
      stop_grace_period: z.string().regex(/^\d+s$/),
      depends_on: z.record(z.string(), z.object({ condition: z.string() })),
    }),
  }),
});
const publishedSchema = z.record(z.string(), z.object({ ports: z.array(z.string()).default([]) }));

/** The settings with which `tally serve` starts there. */
function settingsFor(env: Readonly<Record<string, string>>, files: Readonly<Record<string, string>> = {}): Settings {
  const parsed = parseSettings(env, (path) => ({ mode: 0o400, text: files[path] ?? '' }));
  if (!parsed.ok) throw new Error(parsed.mistakes.join('\n'));
  expect(serveMistakes(parsed.settings)).toEqual([]);
  return parsed.settings;
}

describe('compose.yaml', () => {
  const file: unknown = parse(textOf('compose.yaml'));
  const { services } = composeSchema.parse(file);
  const { tally } = services;

  it('has settings with which Tally serves, waits for the services that it names, and lets a stop end', () => {
    const { AWS_REGION: region, AWS_ACCESS_KEY_ID: _, AWS_SECRET_ACCESS_KEY: __, ...env } = tally.environment;
    const settings = settingsFor(env);
    expect(region).toBe('us-east-1');
    const hosts = ['TALLY_QUEUE_URL', 'TALLY_INDEX_URL'].map((name) => new URL(env[name] ?? '').hostname);
    expect(hosts.toSorted()).toEqual(Object.keys(tally.depends_on).toSorted());
    for (const name of Object.keys(tally.depends_on)) expect(services[name]).toHaveProperty('healthcheck');
    expect(1_000 * Number.parseInt(tally.stop_grace_period, 10)).toBeGreaterThan(settings.TALLY_SHUTDOWN_TIMEOUT_MS);
  });

  it('publishes ports to this machine only, and runs on a file system that it cannot write', () => {
    const published = Object.values(publishedSchema.parse((file as { readonly services: unknown }).services)).flatMap(({ ports }) => ports);
    expect(published).toHaveLength(4);
    for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:/);
  });
});

describe('config/own-store/compose.yaml', () => {
  const file: unknown = parse(textOf('config/own-store/compose.yaml'));
  const { services } = composeSchema.parse(file);

  it('has settings with which Tally takes what stores post, and a queue server that is published to nobody', () => {
    const settings = settingsFor({ ...services.tally.environment, TALLY_INDEX_URL: 'sqlite:/data/index.sqlite' });
    const published = publishedSchema.parse((file as { readonly services: unknown }).services);
    expect(settings.TALLY_EVENTS_ADDRESS).toEqual({ host: '0.0.0.0', port: 8083 });
    expect(published['elasticmq']?.ports).toEqual([]);
    for (const port of published['tally']?.ports ?? []) expect(port).toMatch(/127\.0\.0\.1:/);
  });
});

describe('config/identity/compose.yaml: logins behind a proxy that ends TLS', () => {
  const serviceSchema = z.object({
    environment: z.record(z.string(), z.string()),
    ports: z.array(z.string()).optional(),
    secrets: z.array(z.string()).optional(),
    networks: z.unknown(),
    read_only: z.literal(true),
    cap_drop: z.tuple([z.literal('ALL')]),
  });
  const identitySchema = z.object({
    services: z.strictObject({ proxy: serviceSchema, tally: serviceSchema }),
    networks: z.strictObject({ tally: z.object({ ipam: z.object({ config: z.tuple([z.object({ subnet: z.string() })]) }) }) }),
  });
  const { services, networks } = identitySchema.parse(parse(textOf('config/identity/compose.yaml'), { merge: true }));
  const { proxy, tally } = services;

  it('has settings with which Tally serves off loopback, with its secrets in files', () => {
    const given: Readonly<Record<string, string>> = {
      TALLY_HOST: 'tally.example.com',
      TALLY_OIDC_ISSUER: 'https://id.example.com',
      TALLY_OIDC_ALLOWED: 'domain=example.com',
      TALLY_QUEUE_URL: 'https://sqs.eu-central-1.amazonaws.com/123456789012/bucket-events',
    };
    // as Compose makes it; what must be given and is not is no setting
    const { AWS_REGION: region, ...env } = Object.fromEntries(
      Object.entries(tally.environment).map(([name, value]) => [
        name,
        value.replaceAll(
          /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
          (_, variable: string, kind?: string, rest = '') => given[variable] ?? (kind === '-' ? rest : 'not given'),
        ),
      ]),
    );
    const files = {
      '/run/secrets/oidc-client-secret': 'secret\n',
      '/run/secrets/index-url': 'https://tally:secret@search.internal:9200\n',
    };
    // the image sets the address
    expect(settingsFor({ ...env, TALLY_HEALTH_ADDRESS: '0.0.0.0:8081' }, files)).toMatchObject({
      TALLY_PUBLIC_URL: 'https://tally.example.com',
      TALLY_OIDC_CLIENT_SECRET: 'secret',
      TALLY_OIDC_ALLOWED: ['domain=example.com'],
    });
    expect(region).toBe('eu-central-1');
    expect(Object.keys(files)).toEqual(tally.secrets?.map((name) => `/run/secrets/${name}`));
  });

  it('publishes the proxy only, and trusts its address only', () => {
    expect([tally.ports, proxy.ports]).toEqual([undefined, ['80:80', '443:443', '443:443/udp']]);
    const { tally: placed } = z.object({ tally: z.object({ ipv4_address: z.string() }) }).parse(proxy.networks);
    expect(tally.environment['TALLY_TRUSTED_PROXIES']).toBe(`${placed.ipv4_address}/32`);
    // a second network of both would give the proxy a second address, from which it might come
    expect(tally.networks).toEqual(['tally']);
    expect(placed.ipv4_address.startsWith(networks.tally.ipam.config[0].subnet.replace('0/24', ''))).toBe(true);
  });
});

describe('tally.service', () => {
  const unit = textOf('config/systemd/tally.service');
  const valueOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

  it('has the index URL from a credential, and settings with which Tally serves', () => {
    expect(unit).toContain('\nLoadCredential=index-url:/etc/tally/index-url\nEnvironment=TALLY_INDEX_URL_FILE=%d/index-url\n');
    const queue = 'https://sqs.eu-central-1.amazonaws.com/123456789012/bucket-events';
    const files = { '/index-url': 'https://tally:secret@search:9200\n' };
    const settings = settingsFor({ TALLY_INDEX_URL_FILE: '/index-url', TALLY_QUEUE_URL: queue }, files);
    expect(1_000 * Number(valueOf('TimeoutStopSec'))).toBeGreaterThan(settings.TALLY_SHUTDOWN_TIMEOUT_MS);
  });

  it('is not restarted after what a restart does not help, and has neither root nor capabilities', () => {
    expect(valueOf('RestartPreventExitStatus').split(' ').map(Number)).toEqual([exitCodes.usage, exitCodes.config]);
    expect(['DynamicUser', 'ProtectSystem', 'NoNewPrivileges', 'CapabilityBoundingSet'].map(valueOf)).toEqual(['yes', 'strict', 'yes', '']);
  });
});
