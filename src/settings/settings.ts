/**
 * All settings as one schema. Each setting is defined once, with its description and default, in the file of its subject.
 * Only main.ts reads the environment.
 */
import { z } from 'zod';
import { keySettings } from './api-keys.ts';
import { s3Settings } from './aws.ts';
import { clientSettings } from './client.ts';
import { connectionSettings } from './connections.ts';
import { embeddedSettings } from './embedded.ts';
import { textOfFile, type ReadFile } from './files.ts';
import { identityMistakes, identitySettings, isLoopback } from './identity.ts';
import { indexStoreMistakes, indexStoreSettings } from './index-store.ts';
import { ingestSettings } from './ingest.ts';
import { processSettings } from './process.ts';
import { queueSettings } from './queues.ts';
import { reindexSettings } from './reindex.ts';

/** The settings by subject, in the order in which they are shown. */
export const settingGroups = {
  Process: processSettings,
  'Commands with --registry': clientSettings,
  Queues: queueSettings,
  'Index store': indexStoreSettings,
  Ingest: ingestSettings,
  S3: s3Settings,
  'Re-index and gaps': reindexSettings,
  Connections: connectionSettings,
  'Identity and audit': identitySettings,
  'API keys': keySettings,
  'Embedded mode': embeddedSettings,
};

export const settingsSchema = z.object({
  ...settingGroups.Process,
  ...settingGroups['Commands with --registry'],
  ...settingGroups.Queues,
  ...settingGroups['Index store'],
  ...settingGroups.Ingest,
  ...settingGroups.S3,
  ...settingGroups['Re-index and gaps'],
  ...settingGroups.Connections,
  ...settingGroups['Identity and audit'],
  ...settingGroups['API keys'],
  ...settingGroups['Embedded mode'],
});

export type Settings = z.infer<typeof settingsSchema>;

/** What `tally serve` needs in addition to valid settings, as mistakes like those of parseSettings. */
export function serveMistakes(settings: Settings): readonly string[] {
  return [...offLoopbackMistakes(settings), ...storeMistakes(settings)];
}

/** Off loopback every caller must be known, and its connection encrypted up to a proxy that is known. */
function offLoopbackMistakes(settings: Settings): readonly string[] {
  const { host, port } = settings.TALLY_HTTP_ADDRESS;
  if (isLoopback(host) || !settings.TALLY_ROLES.includes('http')) return [];
  const missing = [
    ...(settings.TALLY_OIDC_ISSUER === undefined
      ? [
          'TALLY_OIDC_ISSUER: must be set to the issuer at which people log in, with TALLY_OIDC_CLIENT_ID and TALLY_OIDC_ALLOWED (and TALLY_OIDC_CLIENT_SECRET, unless the client is public)',
        ]
      : []),
    ...(settings.TALLY_PUBLIC_URL === undefined
      ? ['TALLY_PUBLIC_URL: must be set to the https address at which callers reach the control plane']
      : []),
    ...(settings.TALLY_TRUSTED_PROXIES.length === 0
      ? ['TALLY_TRUSTED_PROXIES: must be set to the addresses (CIDRs) of the reverse proxies that end TLS for the control plane']
      : []),
  ];
  if (missing.length === 0) return [];
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return [
    `TALLY_HTTP_ADDRESS: ${address} is not a loopback address: other machines can reach the control plane there, so the settings below are needed; without them use 127.0.0.1:${port}`,
    ...missing,
  ];
}

function storeMistakes(settings: Settings): readonly string[] {
  if (settings.TALLY_EMBEDDED) {
    return settings.TALLY_QUEUE_URL.length === 0
      ? []
      : ['TALLY_QUEUE_URL: must not be set in the embedded mode, whose queues are in the process'];
  }
  const missing = [
    ...(settings.TALLY_QUEUE_URL.length === 0 && settings.TALLY_ROLES.includes('ingest')
      ? ['TALLY_QUEUE_URL: must be set to the URL of the bucket queue']
      : []),
    ...(settings.TALLY_INDEX_URL === undefined ? ['TALLY_INDEX_URL: must be set to an OpenSearch URL or sqlite:PATH'] : []),
  ];
  return missing.length === 0 ? [] : [...missing, 'To try Tally without any of these, run `tally serve --embedded`'];
}

export type SettingsResult =
  | { readonly ok: true; readonly settings: Settings }
  | { readonly ok: false; readonly mistakes: readonly string[] };

/** Variables that Kubernetes sets for a service named `tally`. They are not settings. */
const SERVICE_LINK = /^TALLY_(.*_)?(SERVICE_(HOST|PORT)|PORT)(_|$)/;

/**
 * Parses the environment, and reads the files that it names with `readFile`. All mistakes are reported together, including
 * unknown TALLY_ names, which are usually mistyped. Mistakes never contain secret values or the content of files.
 */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>, readFile: ReadFile): SettingsResult {
  const values = valuesIn(environment);
  const unknown = Object.keys(values)
    .filter((name) => !(name in settingsSchema.shape))
    .map((name) => `${name}: is not a setting of Tally`);
  const fromFiles = readValueFiles(values, readFile);
  const parsed = settingsSchema.safeParse({ ...values, ...fromFiles.values });
  const mistaken = (parsed.error?.issues ?? []).map(({ path: [name], message }) => `${fromFiles.sourceOf(String(name))}: ${message}`);
  const contradictory = parsed.success
    ? [...indexStoreMistakes(parsed.data, { readFile, sourceOf: fromFiles.sourceOf }), ...identityMistakes(parsed.data)]
    : [];
  // several items of a list may have the same mistake
  const mistakes = [...new Set([...unknown, ...fromFiles.mistakes, ...mistaken, ...contradictory])];
  return parsed.success && mistakes.length === 0 ? { ok: true, settings: parsed.data } : { ok: false, mistakes };
}

/** The TALLY_ variables that are set. An empty variable counts as not set, because compose and unit files write them so. */
function valuesIn(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries(environment).filter(
    (entry): entry is [string, string] =>
      entry[0].startsWith('TALLY_') && entry[1] !== undefined && entry[1] !== '' && !SERVICE_LINK.test(entry[0]),
  );
  return Object.fromEntries(entries);
}

/** Settings whose value may be in a file instead, which the setting of the same name and `_FILE` names. */
const settingsWithFile = Object.keys(settingsSchema.shape).filter((name) => `${name}_FILE` in settingsSchema.shape);

function readValueFiles(set: Readonly<Record<string, string>>, readFile: ReadFile) {
  const values: Record<string, string> = {};
  const mistakes: string[] = [];
  for (const name of settingsWithFile) {
    const filePath = set[`${name}_FILE`];
    if (filePath === undefined) continue;
    const read = name in set ? { mistake: `must not be set together with ${name}` } : textOfFile(filePath, readFile);
    if ('mistake' in read) mistakes.push(`${name}_FILE: ${read.mistake}`);
    else values[name] = read.text;
  }
  const sourceOf = (name: string): string => (name in values ? `${name}_FILE` : name);
  return { values, mistakes, sourceOf };
}
