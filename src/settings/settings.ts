/**
 * All settings in one schema. Each setting is defined once, with its description and default, in its subject's file.
 *
 *   environment ──► main.ts, the only reader ──► parsed here, value by value, then together ──► serve.ts hands each part what it needs
 *
 * This schema produces `tally config` and docs/reference/settings.md.
 */
import { z } from 'zod';
import { identityMistakes, identitySettings } from './identity.ts';
import { address, brokenOf, optionalAddress, integer, itemsOf, optionalPath, socketPath, flag, optionalFlag } from './fields.ts';
import { registryUrl, queueUrl, hasCredentials, indexUrl, isHttps, isLoopback, isServerless } from './urls.ts';
import { BUCKET_NAME } from '../base/bucket-name.ts';
import { INSTALLATION } from '../connect/names.rules.ts';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';

const embeddedSettings = {
  TALLY_EMBEDDED: flag(false).describe(
    'Whether SQS, SNS and S3 run inside this process, as with the option --embedded. The default is false, because the embedded mode is for trying Tally on one machine.',
  ),
  TALLY_EMBEDDED_ADDRESS: address('127.0.0.1:4566').describe(
    "The address (HOST:PORT) on which the embedded SQS, SNS and S3 listen. The default is reachable only from the same machine; 4566 is also LocalStack's port.",
  ),
  TALLY_EMBEDDED_DATA: z
    .string()
    .trim()
    .min(1)
    .default('./data')
    .describe('The folder in which the embedded mode keeps its data, including the index. The default is in the working directory.'),
};

/** The file of the index in the embedded mode. */
export function embeddedIndexPath({ TALLY_EMBEDDED_DATA: folder }: { readonly TALLY_EMBEDDED_DATA: string }): string {
  return join(folder, 'index.sqlite');
}

const clientSettings = {
  TALLY_API_KEY: z
    .string()
    .trim()
    .startsWith('qk_', "API key must start with 'qk_' prefix")
    .optional()
    .describe(
      'The API key for commands. They send it only to the registry that TALLY_REGISTRY_URL or --registry names, else to the one at TALLY_HTTP_ADDRESS. It takes precedence over a login. The value is a secret.',
    ),
  TALLY_API_KEY_FILE: optionalPath.describe(
    'The path of a file that contains the value of TALLY_API_KEY, for example a mounted secret. Only one of the two settings may be set.',
  ),
};

/** The settings of this group whose values are never shown. */
export const clientSecrets: ReadonlySet<string> = new Set(['TALLY_API_KEY']);

/** The settings of API keys. */

const keySettings = {
  TALLY_KEYS_CLAIMS_DAYS: integer(1, 3_650, 30).describe(
    "For how many days after its owner's last login an API key keeps what the identity provider stated then: groups and the administrator role. After that, the key reads what is granted to user: and everyone, until the owner logs in again. People who have left cannot log in.",
  ),
};

/** The settings of the index store. */

const indexStoreSettings = {
  TALLY_INDEX_URL: indexUrl
    .optional()
    .describe(
      'The index store: an OpenSearch URL such as https://user:pass@host:9200 (for several nodes, several URLs separated by commas), or sqlite:PATH. The value is a secret if it contains a password.',
    ),
  TALLY_INDEX_URL_FILE: optionalPath.describe(
    'The path of a file that contains the value of TALLY_INDEX_URL, for example a systemd credential or a mounted secret. Only one of the two settings may be set.',
  ),
  TALLY_INDEX_AUTH: z
    .enum(['none', 'basic', 'sigv4'], { error: 'must be none, basic or sigv4' })
    .optional()
    .describe(
      'How to authenticate to OpenSearch: none, basic (the URL’s user and password) or sigv4 (Amazon OpenSearch Service). With sigv4, the credentials come from the AWS SDK’s credential chain, and the region from the host name or else from AWS_REGION. The default is basic if the URL contains a user, else none.',
    ),
  TALLY_INDEX_CA_FILE: optionalPath.describe(
    'The path of a PEM file with the CA certificates that may sign OpenSearch’s certificate. By default, these are the CAs that Node.js trusts.',
  ),
  TALLY_INDEX_PREFIX: z
    .string()
    .trim()
    .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9 and -, beginning with a letter or digit')
    .refine((text) => !/-(objects|state|write|audit)(-|$)/.test(text), 'may not contain -objects, -state, -write or -audit')
    .default('tally')
    .describe('The beginning of every index and alias name in OpenSearch. Installations that share a cluster need different prefixes.'),
  TALLY_INDEX_SHARDS: integer(1, 64, 1).describe(
    'The number of primary shards of a new bucket index. One shard is enough for about ten million objects.',
  ),
  TALLY_INDEX_REPLICAS: integer(0, 8, 1).describe(
    'The number of replicas of a new index. With one replica, the index survives the failure of one node.',
  ),
};

type IndexStoreSettings = z.output<z.ZodObject<typeof indexStoreSettings>>;

/** The mistakes in how the URL, its authentication and its certificates are combined. `sourceOf` is the name of the setting that provided a value. */
function indexStoreMistakes(
  settings: IndexStoreSettings,
  { readFile, sourceOf }: { readonly readFile: ReadFile; readonly sourceOf: (name: string) => string },
): readonly string[] {
  return [...urlMistakes(settings, sourceOf('TALLY_INDEX_URL')), ...caMistakes(settings, readFile)];
}

function urlMistakes({ TALLY_INDEX_URL: index, ...settings }: IndexStoreSettings, source: string): readonly string[] {
  if (index?.product !== 'opensearch') return [];
  const { nodes } = index;
  const isBasic = (settings.TALLY_INDEX_AUTH ?? 'basic') === 'basic';
  const isPartly = nodes.some(hasCredentials) && !nodes.every(hasCredentials);
  return brokenOf(
    [isBasic && isPartly, 'must have user and password in every URL'],
    [settings.TALLY_INDEX_AUTH === 'basic' && !nodes.some(hasCredentials), 'must have user and password when TALLY_INDEX_AUTH is basic'],
    [!isBasic && nodes.some(hasCredentials), `must have no user and password when TALLY_INDEX_AUTH is ${settings.TALLY_INDEX_AUTH}`],
    [settings.TALLY_INDEX_CA_FILE !== undefined && !nodes.every(isHttps), 'must have only https URLs when TALLY_INDEX_CA_FILE is set'],
    [nodes.some(isServerless), 'must not be OpenSearch Serverless, which does not support refresh=wait_for'],
  ).map((rule) => `${source}: ${rule}`);
}

function caMistakes({ TALLY_INDEX_CA_FILE: filePath }: IndexStoreSettings, readFile: ReadFile): readonly string[] {
  if (filePath === undefined) return [];
  const read = textOfFile(filePath, readFile);
  if ('mistake' in read) return [`TALLY_INDEX_CA_FILE: ${read.mistake}`];
  return isCertificate(read.text) ? [] : ['TALLY_INDEX_CA_FILE: must name a file of certificates in PEM format'];
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.length > 0;
  } catch {
    return false;
  }
}

/** The settings of what Tally makes in AWS. */

const connectionSettings = {
  TALLY_INSTALLATION: z
    .string()
    .trim()
    .regex(INSTALLATION, 'must be 8 hex digits')
    .optional()
    .describe(
      "The name that `tally setup` gives to a new installation: 8 hex digits that become part of the name of everything Tally creates in AWS. By default, it is derived from the bucket queue. A running Tally reads it from the queue's tags.",
    ),
  TALLY_TRAIL_ARN: z
    .string()
    .trim()
    .regex(/^arn:aws[a-z0-9-]*:cloudtrail:[a-z0-9-]+:\d{12}:trail\/[A-Za-z0-9._-]{3,128}$/, 'must be the ARN of a trail')
    .optional()
    .describe(
      'The ARN of the CloudTrail trail for buckets with the source routed. `tally bucket add NAME` adds the bucket to its selectors, basic or advanced, and keeps existing ones. Set it only for a trail that Tally may change.',
    ),
  TALLY_TRAIL_BUCKET: z
    .string()
    .trim()
    .regex(BUCKET_NAME, 'must be the name of a bucket')
    .optional()
    .describe(
      'The log bucket of a trail that belongs to someone else. Tally never reads or changes that trail, and prints the selector for its owner to add. Ignored if TALLY_TRAIL_ARN is set.',
    ),
};

const s3Settings = {
  TALLY_S3_FORCE_PATH_STYLE: optionalFlag.describe(
    'Whether S3 requests use path-style addresses. The default is true if AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_S3 is set, because other S3-compatible stores often need it, else false.',
  ),
};

/** The settings of re-index and of closing gaps. */
const reindexSettings = {
  TALLY_COMPARE_INTERVAL_DAYS: integer(0, 365, 7).describe(
    'How often Tally fully compares each bucket with its index, in days, whatever its source, because events may get lost unnoticed. A million objects take a thousand LIST requests, which cost half a cent. With 0, Tally schedules no comparison.',
  ),
};

/** The settings of ingest: receiving and holding messages, bulk requests, and connecting buckets automatically. */

const ingestSettings = {
  TALLY_INGEST_POLLERS: integer(1, 64, 8).describe(
    'The number of concurrent receive requests per bucket queue. Eight receive up to 80 messages per round trip, which one worker can process.',
  ),
  TALLY_INGEST_WAIT_S: integer(0, 20, 20).describe(
    "How long a receive request waits for messages, in seconds. The default of 20 s is SQS's maximum and causes the fewest empty receives.",
  ),
  TALLY_INGEST_VISIBILITY_S: integer(10, 43_200, 60).describe(
    "How long a received message stays hidden from other workers, in seconds; Tally extends the time for messages that it holds. With 60 s, a killed worker's messages are received again after at most one minute.",
  ),
  TALLY_TARGET_LAG_S: integer(1, 86_400, 60).describe(
    'How long draining the backlog may take, in seconds; Tally computes the metric tally_workers_wanted from it. With 60 s, a scaled installation catches up within about a minute.',
  ),
};

/** The settings of the SQS queues. */

const queueSettings = {
  TALLY_QUEUE_URL: z
    .string()
    .optional()
    .transform((text) => itemsOf(text ?? ''))
    .pipe(z.array(queueUrl).max(10, 'must name at most 10 queues'))
    .describe(
      "The URL of the bucket queue, the SQS queue that receives all buckets' events. You can give up to ten URLs, separated by commas: buckets are connected to the first. The role ingest needs at least one.",
    ),
  TALLY_DEAD_LETTER_QUEUE_URL: queueUrl
    .optional()
    .describe(
      'The URL of the dead-letter queue, to which Tally sends messages that can never succeed, together with the reason. By default, this is the redrive target of the bucket queue that the message came from. Tally finds letters that SQS moved in all redrive targets.',
    ),
};

/** The settings of the process: its roles, where it listens, what it logs, and how long a stop may take. */

const roles = ['ingest', 'reindex', 'http'] as const;

const processSettings = {
  TALLY_ROLES: z
    .string()
    .default(roles.join(','))
    .transform(itemsOf)
    .pipe(z.array(z.enum(roles, { error: `must be of ${roles.join(', ')}` })).min(1, 'must name at least one role'))
    .describe(
      "This process's roles, separated by commas: ingest (writes bucket events to the index), reindex (compares buckets with the index and runs scheduled work) and http (serves the control plane). By default, a process has all of them, so that one process is a complete installation.",
    ),
  TALLY_HTTP_ADDRESS: address('127.0.0.1:8080').describe(
    'The address (HOST:PORT) on which the control plane listens. Any address other than loopback requires TALLY_OIDC_ISSUER, TALLY_PUBLIC_URL and TALLY_TRUSTED_PROXIES, because otherwise everyone who can reach it could use it.',
  ),
  TALLY_HEALTH_ADDRESS: address('127.0.0.1:8081').describe(
    'The address (HOST:PORT) that serves /livez, /readyz and /metrics in every process, whatever its roles. The default is reachable only from the same machine; the container image sets 0.0.0.0:8081.',
  ),
  TALLY_EVENTS_ADDRESS: optionalAddress.describe(
    "The address (HOST:PORT) on which the webhook receiver listens, for buckets with the source webhook, for example 0.0.0.0:8083. It serves POST /events/BUCKET only, and takes what comes with the bucket's token. Not set by default: there is no receiver.",
  ),
  TALLY_SOCKET: socketPath.describe(
    "The path of the Unix socket through which a process with the role http serves its operator. Callers who can open it need no login and may appoint the first administrator; the file has mode 0600. The default is /tmp/tally-UID-PORT.sock, with the user's number and the port of TALLY_HTTP_ADDRESS.",
  ),
  TALLY_REGISTRY_URL: registryUrl
    .optional()
    .describe(
      'The address of the registry that commands use, for example https://tally.example.com; same as the option --registry. Without either, commands use the registry of the last `tally login`, else the socket of a process on this machine (TALLY_SOCKET), else TALLY_HTTP_ADDRESS.',
    ),
  TALLY_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe(
      'The lowest severity to log: trace, debug, info, warn, error, fatal or silent. The default is info, because debug adds a line for each record and each bulk request.',
    ),
  TALLY_SHUTDOWN_TIMEOUT_MS: integer(500, 600_000, 25_000).describe(
    'The longest time a shutdown may take, in milliseconds. The default of 25 s is below the 30 s that ECS and Kubernetes allow.',
  ),
};

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
  const missing = brokenOf(
    [
      settings.TALLY_OIDC_ISSUER === undefined,
      'TALLY_OIDC_ISSUER: must be set to the issuer for logins, with TALLY_OIDC_CLIENT_ID and TALLY_OIDC_ALLOWED (and TALLY_OIDC_CLIENT_SECRET, unless the client is public)',
    ],
    [
      settings.TALLY_PUBLIC_URL === undefined,
      'TALLY_PUBLIC_URL: must be set to the https address at which callers reach the control plane',
    ],
    [
      settings.TALLY_TRUSTED_PROXIES.length === 0,
      'TALLY_TRUSTED_PROXIES: must be set to the addresses (CIDRs) of the reverse proxies that terminate TLS for the control plane',
    ],
  );
  if (missing.length === 0) return [];
  const shown = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return [
    `TALLY_HTTP_ADDRESS: ${shown} is not a loopback address: other machines can reach the control plane there, so add the settings below, or use 127.0.0.1:${port}`,
    ...missing,
  ];
}

function storeMistakes(settings: Settings): readonly string[] {
  if (settings.TALLY_EMBEDDED) {
    return settings.TALLY_QUEUE_URL.length === 0 ? [] : ['TALLY_QUEUE_URL: must not be set in the embedded mode, which has its own queues'];
  }
  const noQueue = settings.TALLY_QUEUE_URL.length === 0;
  const missing = brokenOf(
    [noQueue && settings.TALLY_ROLES.includes('ingest'), 'TALLY_QUEUE_URL: must be set to the URL of the bucket queue'],
    [
      noQueue && settings.TALLY_EVENTS_ADDRESS !== undefined,
      'TALLY_EVENTS_ADDRESS: needs TALLY_QUEUE_URL, the queue to which the receiver writes',
    ],
    [settings.TALLY_INDEX_URL === undefined, 'TALLY_INDEX_URL: must be set to an OpenSearch URL or sqlite:PATH'],
  );
  return missing.length === 0 ? [] : [...missing, 'To try Tally without any of these, run `tally serve --embedded`'];
}

type SettingsResult = { readonly ok: true; readonly settings: Settings } | { readonly ok: false; readonly mistakes: readonly string[] };

/** Variables that Kubernetes sets for a service named `tally`. They are not settings. */
const SERVICE_LINK = /^TALLY_(.*_)?(SERVICE_(HOST|PORT)|PORT)(_|$)/;

/**
 * Parses the environment, and reads the files that it names with `readFile`. All mistakes in values are reported together, including
 * unknown TALLY_ names, which are usually mistyped; settings that do not fit together, once each value is valid. Mistakes never
 * contain secret values or the content of files.
 */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>, readFile: ReadFile): SettingsResult {
  const values = valuesIn(environment);
  const unknown = Object.keys(values)
    .filter((name) => !(name in settingsSchema.shape))
    .map((name) => `${name}: is not a Tally setting: correct its name, or unset it`);
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

interface SettingFile {
  readonly text: string;
  /** The permission bits. */
  readonly mode: number;
}

/** Reads a file. Throws an error with a `code` (ENOENT, EACCES, …) when it cannot be read. */
export type ReadFile = (filePath: string) => SettingFile;

/**
 * The text of a file without its last newline, or why it cannot be used. The mistake never contains the path, because the
 * user may have put the secret itself there. Files that everyone may read are allowed: Kubernetes and Docker mount secrets
 * that way.
 */
export function textOfFile(filePath: string, readFile: ReadFile): { readonly text: string } | { readonly mistake: string } {
  try {
    const { text, mode } = readFile(filePath.trim());
    if ((mode & 0o002) !== 0) return { mistake: 'must name a file that is not world-writable (chmod o-w)' };
    const value = text.replace(/\r?\n$/, '');
    return value === '' ? { mistake: 'must name a file that is not empty' } : { text: value };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    return { mistake: `must name a file that can be read (${code})` };
  }
}

/** The socket of the service (config/systemd/tally.service), which root and the service's user may open. */
const SERVICE_SOCKET = '/run/tally/tally.sock';
/** Where a registry that listens on all addresses is reached from its own machine. */
const LOCAL_HOST = '127.0.0.1';

type Listening = Pick<Settings, 'TALLY_SOCKET' | 'TALLY_HTTP_ADDRESS'>;

/** The socket of a process of this user. The port tells several of them apart, as it does for their addresses. */
export function ownSocket({ TALLY_SOCKET: named, TALLY_HTTP_ADDRESS: { port } }: Listening, userId: number): string {
  return named ?? `/tmp/tally-${userId}-${port}.sock`;
}

/** Where a command of this user looks for a registry that nothing names: the sockets, the nearest first, and the address. */
export function localRegistry(settings: Listening, userId: number): { readonly sockets: readonly string[]; readonly url: string } {
  const { host, port } = settings.TALLY_HTTP_ADDRESS;
  const own = ownSocket(settings, userId);
  const at = isLoopback(host) ? host : LOCAL_HOST;
  return {
    sockets: settings.TALLY_SOCKET === undefined ? [own, SERVICE_SOCKET] : [own],
    url: `http://${at.includes(':') ? `[${at}]` : at}:${port}`,
  };
}
