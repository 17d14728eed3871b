/** Object addresses as people paste them: s3://, ARNs, console and virtual-hosted URLs. */
import { isBucketName } from '../base/bucket-name.ts';

export interface Location {
  readonly bucket: string;
  /** The key of the object, or the folder, which is empty or ends in a slash. */
  readonly key: string;
}

const ADDRESS = /^(?:s3a?:\/\/|arn:aws[a-z0-9-]*:s3:|https?:\/\/)/i;

/** Whether the text looks like an address. */
export function isAddress(text: string): boolean {
  return ADDRESS.test(text);
}

/** The bucket and the key that an address names; undefined if it names none. */
export function locationOf(text: string): Location | undefined {
  const plain = /^s3a?:\/\/([^/]+)(?:\/(.*))?$/is.exec(text) ?? /^arn:aws[a-z0-9-]*:s3:::([^/]+)(?:\/(.*))?$/is.exec(text);
  if (plain !== null) return named(plain[1] ?? '', plain[2] ?? '');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return undefined;
  return consoleLocation(url) ?? endpointLocation(url);
}

function named(bucket: string, key: string): Location | undefined {
  return isBucketName(bucket) ? { bucket, key } : undefined;
}

/** https://eu-central-1.console.aws.amazon.com/s3/object/BUCKET?prefix=KEY, and …/s3/buckets/BUCKET?prefix=FOLDER/ */
function consoleLocation({ hostname, pathname, searchParams }: URL): Location | undefined {
  if (!/(?:^|\.)console\.(?:aws\.amazon\.com|amazonaws\.cn)$/.test(hostname)) return undefined;
  const [, bucket = ''] = /^\/s3\/(?:object|buckets)\/([^/]+)$/.exec(pathname) ?? [];
  return named(bucket, searchParams.get('prefix') ?? '');
}

/** The longest name in DNS, which bounds the work of the pattern below. */
const HOSTNAME_MAX = 253;

/** https://BUCKET.s3.REGION.amazonaws.com/KEY, and https://s3.REGION.amazonaws.com/BUCKET/KEY. Signatures and versions in the query do not matter. */
function endpointLocation({ hostname, pathname }: URL): Location | undefined {
  const path = decoded(pathname.slice(1));
  if (path === undefined || hostname.length > HOSTNAME_MAX) return undefined;
  // what follows s3 is one run: a repeated group that begins with a hyphen and may contain hyphens would be tried in all ways
  const host = /^(?:(.+)\.)?s3(?:[.-][a-z0-9.-]*)?\.amazonaws\.com(?:\.cn)?$/.exec(hostname);
  if (host === null) return undefined;
  if (host[1] !== undefined) return named(host[1], path);
  const slash = path.indexOf('/');
  return slash < 0 ? named(path, '') : named(path.slice(0, slash), path.slice(slash + 1));
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
