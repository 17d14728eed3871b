/** Setting values that are URLs. */
import { z } from 'zod';

/** The URL of an SQS queue. */
export const queueUrl = z
  .string()
  .trim()
  .refine(isHttpUrl, 'must be the URL of an SQS queue')
  .refine((text) => !hasCredentials(text), 'must not contain a user or password: AWS credentials come from the AWS SDK’s own variables');

/** An address that others use: https, or http on loopback. */
export const originUrl = z
  .string()
  .trim()
  .refine((text) => isHttpUrl(text) && isOrigin(text), 'must be https://HOST without a path')
  .refine((text) => !isHttpUrl(text) || isSafeOrigin(text), 'must be https, except on loopback')
  .transform((text) => (URL.canParse(text) ? new URL(text).origin : text));

function isSafeOrigin(text: string): boolean {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || isLoopback(hostname);
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '::1', '[::1]']);

/** Whether the name of a host is this machine's for itself. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host);
}

/** The address of a control plane: http://127.0.0.1:8080. */
export const registryUrl = z
  .string()
  .trim()
  .refine((text) => isHttpUrl(text) && isOrigin(text), 'must be https://HOST or http://HOST:PORT, without a path')
  .transform((text) => new URL(text).origin);

/** Where the index is: in one SQLite file, or on the nodes of one OpenSearch cluster. */
export type IndexLocation =
  | { readonly product: 'sqlite'; readonly path: string }
  | { readonly product: 'opensearch'; readonly nodes: readonly string[] };

/** https://user:pass@host:9200 (several nodes separated by commas) or sqlite:PATH. Mistakes never repeat any part of the value. */
export const indexUrl = z
  .string()
  .trim()
  .transform((text, context): IndexLocation => {
    if (/^sqlite:./.test(text)) return { product: 'sqlite', path: text.slice('sqlite:'.length) };
    const nodes = text.split(',').map((node) => node.trim());
    for (const node of nodes) {
      const mistake = nodeMistake(node);
      if (mistake !== undefined) context.addIssue(mistake);
    }
    return { product: 'opensearch', nodes };
  });

/** The location as a URL, as users write it; it can contain passwords. */
export function indexUrlText(index: IndexLocation): string {
  return index.product === 'sqlite' ? `sqlite:${index.path}` : index.nodes.join(',');
}

function nodeMistake(text: string): string | undefined {
  if (!isHttpUrl(text)) {
    return 'must be an OpenSearch URL (https://user:pass@host:9200; several separated by commas) or sqlite:PATH; percent-encode , / ? # % in user and password';
  }
  const { username, password, pathname } = new URL(text);
  if (!isPercentEncoded(username) || !isPercentEncoded(password)) return 'must have % percent-encoded as %25 in user and password';
  if (pathname === '/' && !/[?#]/.test(text)) return undefined;
  return 'must end after the host or port, without a path; percent-encode / ? # in user and password';
}

function isHttpUrl(text: string): boolean {
  return /^https?:\/\/\S+$/i.test(text) && URL.canParse(text);
}

/** Whether a URL has a user or a password. */
export function hasCredentials(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username !== '' || password !== '';
}

function isOrigin(text: string): boolean {
  return !hasCredentials(text) && new URL(text).pathname === '/' && !/[?#]/.test(text);
}

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether requests to the node use TLS. */
export function isHttps(node: string): boolean {
  return new URL(node).protocol === 'https:';
}

/** Whether a node is a collection of Amazon OpenSearch Serverless: ID.REGION.aoss.amazonaws.com or ID.aoss.REGION.on.aws. */
export function isServerless(node: string): boolean {
  return /\.aoss\.(?:amazonaws\.com|[a-z0-9-]+\.on\.aws)$/.test(new URL(node).hostname);
}
