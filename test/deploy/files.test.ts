/** What compose.yaml and the systemd unit say, without running them: deploy.test.ts does, in `npm run test:long`. */
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
function settingsFor(env: Readonly<Record<string, string>>, indexUrl = ''): Settings {
  const parsed = parseSettings(env, () => ({ mode: 0o400, text: indexUrl }));
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

describe('tally.service', () => {
  const unit = textOf('config/systemd/tally.service');
  const valueOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

  it('has the index URL from a credential, and settings with which Tally serves', () => {
    expect(unit).toContain('\nLoadCredential=index-url:/etc/tally/index-url\nEnvironment=TALLY_INDEX_URL_FILE=%d/index-url\n');
    const queue = 'https://sqs.eu-central-1.amazonaws.com/123456789012/bucket-events';
    const settings = settingsFor({ TALLY_INDEX_URL_FILE: '/index-url', TALLY_QUEUE_URL: queue }, 'https://tally:secret@search:9200\n');
    expect(1_000 * Number(valueOf('TimeoutStopSec'))).toBeGreaterThan(settings.TALLY_SHUTDOWN_TIMEOUT_MS);
  });

  it('is not restarted after what a restart does not help, and has neither root nor capabilities', () => {
    expect(valueOf('RestartPreventExitStatus').split(' ').map(Number)).toEqual([exitCodes.usage, exitCodes.config]);
    expect(['DynamicUser', 'ProtectSystem', 'NoNewPrivileges', 'CapabilityBoundingSet'].map(valueOf)).toEqual(['yes', 'strict', 'yes', '']);
  });
});
