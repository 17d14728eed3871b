/** The settings that are URLs: what may stand in them. */
import { z } from 'zod';

/** The URL of an SQS queue. */
export const queueUrl = z
  .string()
  .trim()
  .refine(isHttpUrl, 'must be the URL of an SQS queue')
  .refine((text) => !hasCredentials(text), 'must name no user or password: AWS credentials come from the AWS SDK’s own variables');

/** The address of a control plane: http://127.0.0.1:8080. */
export const registryUrl = z
  .string()
  .trim()
  .refine((text) => isHttpUrl(text) && isOrigin(text), 'must be http://HOST:PORT and nothing more')
  .transform((text) => new URL(text).origin);

/** https://user:pass@host:9200, several nodes comma-separated, or sqlite:PATH. What it says of a mistake repeats nothing of the value. */
export const indexUrl = z
  .string()
  .trim()
  .superRefine((text, context) => {
    if (/^sqlite:./.test(text)) return;
    for (const part of text.split(',')) {
      const mistake = nodeMistake(part.trim());
      if (mistake !== undefined) context.addIssue(mistake);
    }
  });

function nodeMistake(text: string): string | undefined {
  if (!isHttpUrl(text)) {
    return 'must be an OpenSearch URL (https://user:pass@host:9200; several comma-separated) or sqlite:PATH; in user and password , / ? # % must be percent-encoded';
  }
  const { username, password, pathname } = new URL(text);
  if (!isPercentEncoded(username) || !isPercentEncoded(password)) return 'must have % percent-encoded (%25) in user and password';
  if (pathname === '/' && !/[?#]/.test(text)) return undefined;
  return 'must end with the host or its port: no path, and / ? # percent-encoded in user and password';
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

/** OpenSearch's nodes in TALLY_INDEX_URL; none for a SQLite index. */
export function indexNodes(url: string | undefined): readonly string[] {
  if (url === undefined || url.startsWith('sqlite:')) return [];
  return url.split(',').map((node) => node.trim());
}

/** Whether a node is asked through TLS. */
export function isHttps(node: string): boolean {
  return new URL(node).protocol === 'https:';
}

/** Whether a node is a collection of Amazon OpenSearch Serverless: ID.REGION.aoss.amazonaws.com, ID.aoss.REGION.on.aws. */
export function isServerless(node: string): boolean {
  return /\.aoss\.(?:amazonaws\.com|[a-z0-9-]+\.on\.aws)$/.test(new URL(node).hostname);
}
