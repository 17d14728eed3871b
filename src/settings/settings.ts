/** The settings: one schema, each with a description, a default and its reason. Only main.ts reads the environment. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { integer } from './fields.ts';
import { reindexSettings } from './reindex.ts';
import { hasCredentials, indexNodes, indexUrl, isHttps, isServerless, queueUrl, registryUrl } from './urls.ts';

export const roles = ['ingest', 'reindex', 'http'] as const;

const list = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .default(fallback ? 'true' : 'false')
    .transform((text) => text === 'true');

const path = z.string().trim().min(1, 'must be a path').optional();

/** host:port; IPv6 in brackets. Port 0 lets the system choose. */
const address = (fallback: string) =>
  z
    .string()
    .trim()
    .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'must be HOST:PORT')
    .default(fallback)
    .transform((text) => {
      const colon = text.lastIndexOf(':');
      return { host: text.slice(0, colon).replaceAll(/[[\]]/g, ''), port: Number(text.slice(colon + 1)) };
    })
    .refine(({ port }) => port <= 65_535, 'must have a port of at most 65535');

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);

export const settingsSchema = z.object({
  TALLY_QUEUE_URL: z
    .string()
    .optional()
    .transform((text) => list(text ?? ''))
    .pipe(z.array(queueUrl).max(10))
    .describe('The bucket queue: the SQS queue that all bucket events reach. Several, comma-separated.'),
  TALLY_WORK_QUEUE_URL: queueUrl
    .optional()
    .describe('The SQS queue that re-index work travels on. Without it the role reindex does nothing and jobs stay queued.'),
  TALLY_DEAD_LETTER_QUEUE_URL: queueUrl
    .optional()
    .describe('Where rejected messages go, with their reason. Default: the bucket queue’s redrive target.'),
  TALLY_INDEX_URL: indexUrl
    .optional()
    .describe('The index store: https://user:pass@host:9200 (OpenSearch; several nodes comma-separated) or sqlite:PATH. Secret.'),
  TALLY_INDEX_URL_FILE: path.describe('A file that holds TALLY_INDEX_URL, instead of it: a systemd credential, a mounted secret.'),
  TALLY_INDEX_AUTH: z
    .enum(['none', 'basic', 'sigv4'], { error: 'must be none, basic or sigv4' })
    .optional()
    .describe(
      'How requests to OpenSearch are authenticated: none, basic (user and password of the URL) or sigv4 (Amazon OpenSearch Service; credentials by the AWS SDK’s own chain, region by the host, else AWS_REGION). Default: basic if the URL has a user, else none.',
    ),
  TALLY_INDEX_CA_FILE: path.describe(
    'The certificates (PEM) of the authorities that OpenSearch’s own is checked against. Default: Node.js’s.',
  ),
  TALLY_INDEX_PREFIX: z
    .string()
    .trim()
    .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9 and -, beginning with a letter or digit')
    .refine((text) => !/-(objects|state|write|audit)(-|$)/.test(text), 'may not contain -objects, -state, -write or -audit')
    .default('tally')
    .describe('First word of every index name.'),
  TALLY_INDEX_SHARDS: integer(1, 64, 1).describe('Primary shards of a new bucket index. 1: enough for some ten million objects.'),
  TALLY_INDEX_REPLICAS: integer(0, 8, 1).describe('Replicas of a new index. 1: one node may fail.'),
  TALLY_ROLES: z
    .string()
    .default(roles.join(','))
    .transform(list)
    .pipe(z.array(z.enum(roles, { error: `must be of ${roles.join(', ')}` })).min(1, 'must name at least one role'))
    .describe(
      'What this process does, comma-separated: ingest (bucket queue → index), reindex (work queue → list, compare, write), http (control plane).',
    ),
  TALLY_HTTP_ADDRESS: address('127.0.0.1:8080')
    .refine(
      ({ host }) => LOOPBACK.has(host),
      'must be a loopback address: callers of the control plane are not authenticated in this version',
    )
    .describe('The control plane. Loopback only, since its callers are not authenticated.'),
  TALLY_REGISTRY_URL: registryUrl
    .optional()
    .describe(
      'Commands (all but serve and config) ask the control plane at this address, like http://127.0.0.1:8080, instead of opening index and queues themselves. The same as --registry.',
    ),
  TALLY_HEALTH_ADDRESS: address('127.0.0.1:8081').describe('/livez, /readyz and /metrics, on every process whatever its roles.'),
  TALLY_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least severe log line that is written.'),
  TALLY_SHUTDOWN_TIMEOUT_MS: integer(500, 600_000, 25_000).describe(
    'A stop ends within this time. 25 s: below the 30 s that ECS and Kubernetes give.',
  ),
  TALLY_INGEST_POLLERS: integer(1, 64, 8).describe('Receives at once. 8: eighty messages a round trip, which one worker keeps up with.'),
  TALLY_INGEST_WAIT_S: integer(0, 20, 20).describe('Long-poll wait of a receive. 20 s: SQS’s longest, the fewest empty receives.'),
  TALLY_INGEST_VISIBILITY_S: integer(10, 43_200, 60).describe(
    'How long a received message stays hidden unless extended. 60 s: what a killed worker held comes back after at most this.',
  ),
  TALLY_INGEST_HELD_MAX: integer(10, 20_000, 1_000).describe(
    'Messages held for slow work (HEADs, waits) before receiving pauses. 1,000 of 1 MiB at worst is 1 GiB; usually 2 MiB.',
  ),
  TALLY_INGEST_HOLD_MAX_MS: integer(1_000, 3_600_000, 600_000).describe(
    'How long a message is held through an outage before it is given back once. 10 min.',
  ),
  TALLY_INGEST_IN_FLIGHT_MAX: integer(100, 120_000, 80_000).describe(
    'Receiving pauses above this many messages in flight. SQS stops, silently, at 120,000.',
  ),
  TALLY_BULK_ACTIONS: integer(1, 10_000, 1_000).describe(
    'Actions in one bulk request. 1,000: measured best for latency at full throughput.',
  ),
  TALLY_BULK_BYTES: integer(10_000, 50_000_000, 5_242_880).describe('Bytes in one bulk request. 5 MiB: far below OpenSearch’s 100 MB.'),
  TALLY_BULK_LINGER_MS: integer(0, 1_000, 20).describe(
    'How long a bulk request waits to be filled. 20 ms: unnoticed, yet fills requests under load.',
  ),
  TALLY_BULK_CONCURRENCY: integer(1, 32, 4).describe('Bulk requests at once. 4: measured best on two cores.'),
  TALLY_S3_HEAD_CONCURRENCY: integer(1, 512, 32).describe(
    'HEADs at once. 32: some 500/s at 60 ms each, a tenth of what one S3 prefix takes.',
  ),
  TALLY_S3_TIMEOUT_MS: integer(500, 60_000, 10_000).describe('Time-out of one S3 request.'),
  TALLY_S3_FORCE_PATH_STYLE: z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .optional()
    .transform((text) => (text === undefined ? undefined : text === 'true'))
    .describe('Path-style S3 addresses. Default: true when AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_S3 is set, else false.'),
  ...reindexSettings,
  TALLY_AUTO_CONNECT: z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .optional()
    .transform((text) => (text === undefined ? undefined : text === 'true'))
    .describe('Connect a bucket at its first event. Default false; true when embedded.'),
  TALLY_AUTO_CONNECT_MAX: integer(1, 10_000, 100).describe('At most this many buckets are connected by TALLY_AUTO_CONNECT.'),
  TALLY_TARGET_LAG_S: integer(1, 86_400, 60).describe('The lag that tally_workers_wanted aims at: how long the backlog may take to drain.'),
  TALLY_EMBEDDED: flag(false).describe('Run SQS, SNS and S3 in this process (the same as --embedded). For trying it on one machine.'),
  TALLY_EMBEDDED_ADDRESS: address('127.0.0.1:4566').describe('Endpoint of the embedded SQS, SNS and S3.'),
  TALLY_EMBEDDED_DATA: z.string().trim().min(1).default('./data').describe('Data folder of the embedded mode.'),
});

export type Settings = z.infer<typeof settingsSchema>;

/** What Tally needs of the AWS SDK's own variables; credentials are the SDK's business alone. */
export interface AwsEnvironment {
  readonly region: string;
  /** Absent: AWS itself. */
  readonly endpoints: { readonly sqs?: string | undefined; readonly sns?: string | undefined; readonly s3?: string | undefined };
}

/** Reads them as the SDK does: AWS_REGION, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>. */
export function awsEnvironment(environment: Readonly<Record<string, string | undefined>>): AwsEnvironment {
  const set = (name: string): string | undefined => (environment[name] === '' ? undefined : environment[name]);
  const endpoint = (service: string): string | undefined => set(`AWS_ENDPOINT_URL_${service}`) ?? set('AWS_ENDPOINT_URL');
  return {
    region: set('AWS_REGION') ?? set('AWS_DEFAULT_REGION') ?? 'us-east-1',
    endpoints: { sqs: endpoint('SQS'), sns: endpoint('SNS'), s3: endpoint('S3') },
  };
}

/** What `tally serve` needs beyond valid settings, as mistakes like those of parseSettings. */
export function serveMistakes(settings: Settings): readonly string[] {
  if (settings.TALLY_EMBEDDED) {
    return settings.TALLY_QUEUE_URL.length === 0 ? [] : ['TALLY_QUEUE_URL: must not be set when embedded: the queues are in the process'];
  }
  const missing = [
    ...(settings.TALLY_QUEUE_URL.length === 0 && settings.TALLY_ROLES.includes('ingest')
      ? ['TALLY_QUEUE_URL: must be set: the URL of the bucket queue']
      : []),
    ...(settings.TALLY_INDEX_URL === undefined ? ['TALLY_INDEX_URL: must be set: an OpenSearch URL or sqlite:PATH'] : []),
  ];
  return missing.length === 0 ? [] : [...missing, 'To try Tally without any of these: tally serve --embedded'];
}

export type SettingsResult =
  | { readonly ok: true; readonly settings: Settings }
  | { readonly ok: false; readonly mistakes: readonly string[] };

/** Variables that Kubernetes sets for a service named `tally`; they are no settings of ours. */
const SERVICE_LINK = /^TALLY_(.*_)?(SERVICE_(HOST|PORT)|PORT)(_|$)/;

/** A file that a setting names. */
interface SettingFile {
  readonly text: string;
  /** Its permission bits. */
  readonly mode: number;
}

/** Reads a file; throws an error with a `code` (ENOENT, EACCES, …) where it cannot. */
export type ReadFile = (filePath: string) => SettingFile;

/**
 * Parses the environment, and reads the files that it names through `readFile`. All mistakes are reported together,
 * unknown TALLY_ names (a mistyped one) among them; secret values and the content of files are never repeated.
 */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>, readFile: ReadFile): SettingsResult {
  const values = given(environment);
  const unknown = Object.keys(values)
    .filter((name) => !(name in settingsSchema.shape))
    .map((name) => `${name}: no such setting`);
  const secrets = readSecrets(values, readFile);
  const parsed = settingsSchema.safeParse({ ...values, ...secrets.values });
  const mistaken = (parsed.error?.issues ?? []).map(({ path: [name], message }) => `${secrets.sourceOf(String(name))}: ${message}`);
  const contradictory = parsed.success
    ? [...queueMistakes(parsed.data), ...indexMistakes(parsed.data, secrets.sourceOf), ...caMistakes(parsed.data, readFile)]
    : [];
  // several parts of a list may have the same one
  const mistakes = [...new Set([...unknown, ...secrets.mistakes, ...mistaken, ...contradictory])];
  return parsed.success && mistakes.length === 0 ? { ok: true, settings: parsed.data } : { ok: false, mistakes };
}

/** An empty variable counts as not set: compose files and unit files write them so. */
function given(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries(environment).filter(
    (entry): entry is [string, string] =>
      entry[0].startsWith('TALLY_') && entry[1] !== undefined && entry[1] !== '' && !SERVICE_LINK.test(entry[0]),
  );
  return Object.fromEntries(entries);
}

/** Settings that may stand in a file instead, which a setting of the same name and `_FILE` names. */
const SECRETS = ['TALLY_INDEX_URL'] as const;

function readSecrets(set: Readonly<Record<string, string>>, readFile: ReadFile) {
  const values: Record<string, string> = {};
  const mistakes: string[] = [];
  for (const name of SECRETS) {
    const filePath = set[`${name}_FILE`];
    if (filePath === undefined) continue;
    const read = name in set ? { mistake: `must not be set beside ${name}` } : textOf(filePath, readFile);
    if ('mistake' in read) mistakes.push(`${name}_FILE: ${read.mistake}`);
    else values[name] = read.text;
  }
  const sourceOf = (name: string): string => (name in values ? `${name}_FILE` : name);
  return { values, mistakes, sourceOf };
}

/**
 * The text of a file without its last newline, or why it is no good. Neither says the path: somebody may have put the
 * secret itself there. Files that everyone may read are fine: Kubernetes and Docker mount secrets so.
 */
function textOf(filePath: string, readFile: ReadFile): { readonly text: string } | { readonly mistake: string } {
  try {
    const { text, mode } = readFile(filePath.trim());
    if ((mode & 0o002) !== 0) return { mistake: 'must name a file that not everyone may write to (chmod o-w)' };
    const value = text.replace(/\r?\n$/, '');
    return value === '' ? { mistake: 'must name a file that is not empty' } : { text: value };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    return { mistake: `must name a file that can be read (${code})` };
  }
}

/** What is no task is deleted from the work queue: bucket events would be lost. */
function queueMistakes({
  TALLY_WORK_QUEUE_URL: work,
  TALLY_QUEUE_URL: bucket,
  TALLY_DEAD_LETTER_QUEUE_URL: letters,
}: Settings): readonly string[] {
  if (work === undefined || !(bucket.includes(work) || work === letters)) return [];
  return ['TALLY_WORK_QUEUE_URL: must be a queue of its own: neither a bucket queue nor the dead-letter queue'];
}

/** Where the URL, its authentication and its certificates contradict each other. */
function indexMistakes({ TALLY_INDEX_URL: url, ...settings }: Settings, sourceOf: (name: string) => string): readonly string[] {
  const nodes = indexNodes(url);
  const isBasic = (settings.TALLY_INDEX_AUTH ?? 'basic') === 'basic';
  const isPartly = nodes.some(hasCredentials) && !nodes.every(hasCredentials);
  const rules: readonly (readonly [isBroken: boolean, rule: string])[] = [
    [isBasic && isPartly, 'must have user and password in every URL'],
    [settings.TALLY_INDEX_AUTH === 'basic' && !nodes.some(hasCredentials), 'must have user and password where TALLY_INDEX_AUTH is basic'],
    [!isBasic && nodes.some(hasCredentials), `must have no user and password where TALLY_INDEX_AUTH is ${settings.TALLY_INDEX_AUTH}`],
    [settings.TALLY_INDEX_CA_FILE !== undefined && !nodes.every(isHttps), 'must have https URLs only where TALLY_INDEX_CA_FILE is set'],
    [nodes.some(isServerless), 'must not be OpenSearch Serverless, which has no refresh=wait_for'],
  ];
  return rules.flatMap(([isBroken, rule]) => (isBroken && nodes.length > 0 ? [`${sourceOf('TALLY_INDEX_URL')}: ${rule}`] : []));
}

function caMistakes({ TALLY_INDEX_CA_FILE: filePath }: Settings, readFile: ReadFile): readonly string[] {
  if (filePath === undefined) return [];
  const read = textOf(filePath, readFile);
  if ('mistake' in read) return [`TALLY_INDEX_CA_FILE: ${read.mistake}`];
  return isCertificate(read.text) ? [] : ['TALLY_INDEX_CA_FILE: must name a file of certificates (PEM)'];
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.length > 0;
  } catch {
    return false;
  }
}
