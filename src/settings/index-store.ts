/** The settings of the index store. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { integer, optionalPath } from './fields.ts';
import { textOfFile, type ReadFile } from './files.ts';
import { hasCredentials, indexUrl, isHttps, isServerless } from './urls.ts';

export const indexStoreSettings = {
  TALLY_INDEX_URL: indexUrl
    .optional()
    .describe(
      'The index store: an OpenSearch URL such as https://user:pass@host:9200 (the URLs of several nodes are separated by commas), or sqlite:PATH. The value is a secret if it contains a password.',
    ),
  TALLY_INDEX_URL_FILE: optionalPath.describe(
    'The path of a file that contains the value of TALLY_INDEX_URL, for example a systemd credential or a mounted secret. Only one of the two settings may be set.',
  ),
  TALLY_INDEX_AUTH: z
    .enum(['none', 'basic', 'sigv4'], { error: 'must be none, basic or sigv4' })
    .optional()
    .describe(
      'How requests to OpenSearch are authenticated: none, basic (the user and password of the URL) or sigv4 (Amazon OpenSearch Service). With sigv4 the credentials come from the AWS SDK’s credential chain, and the region comes from the host name or else from AWS_REGION. The default is basic if the URL contains a user, else none.',
    ),
  TALLY_INDEX_CA_FILE: optionalPath.describe(
    'The path of a PEM file with the certificates of the authorities that may sign OpenSearch’s certificate. By default these are the authorities that Node.js trusts.',
  ),
  TALLY_INDEX_PREFIX: z
    .string()
    .trim()
    .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9 and -, beginning with a letter or digit')
    .refine((text) => !/-(objects|state|write|audit)(-|$)/.test(text), 'may not contain -objects, -state, -write or -audit')
    .default('tally')
    .describe('The first part of every index and alias name in OpenSearch. Installations that share a cluster need different prefixes.'),
  TALLY_INDEX_SHARDS: integer(1, 64, 1).describe(
    'The number of primary shards of a new bucket index. One shard is enough for about ten million objects.',
  ),
  TALLY_INDEX_REPLICAS: integer(0, 8, 1).describe(
    'The number of replicas of a new index. With one replica the index survives the failure of one node.',
  ),
};

type IndexStoreSettings = z.output<z.ZodObject<typeof indexStoreSettings>>;

/** The mistakes in how the URL, its authentication and its certificates are combined. `sourceOf` is the name of the setting that provided a value. */
export function indexStoreMistakes(
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
  const rules: readonly (readonly [isBroken: boolean, rule: string])[] = [
    [isBasic && isPartly, 'must have user and password in every URL'],
    [settings.TALLY_INDEX_AUTH === 'basic' && !nodes.some(hasCredentials), 'must have user and password when TALLY_INDEX_AUTH is basic'],
    [!isBasic && nodes.some(hasCredentials), `must have no user and password when TALLY_INDEX_AUTH is ${settings.TALLY_INDEX_AUTH}`],
    [settings.TALLY_INDEX_CA_FILE !== undefined && !nodes.every(isHttps), 'must have only https URLs when TALLY_INDEX_CA_FILE is set'],
    [nodes.some(isServerless), 'must not be OpenSearch Serverless, which does not support refresh=wait_for'],
  ];
  return rules.flatMap(([isBroken, rule]) => (isBroken ? [`${source}: ${rule}`] : []));
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
