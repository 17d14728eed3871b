/** What people paste into the search: an address of an object leads to the object. */

export interface PastedObject {
  readonly bucket: string;
  readonly key: string;
}

const FORMS: readonly RegExp[] = [
  /^s3a?:\/\/(?<bucket>[^/]+)\/(?<key>[\s\S]+)$/,
  /^arn:aws[a-z0-9-]*:s3:::(?<bucket>[^/:]+)\/(?<key>[\s\S]+)$/,
];

/** The object that a text names: an s3:// URI, an ARN, an address of S3 or of the console. Undefined: the text is something else. */
export function pastedObject(text: string): PastedObject | undefined {
  for (const form of FORMS) {
    const { bucket, key } = form.exec(text.trim())?.groups ?? {};
    if (bucket !== undefined && key !== undefined) return { bucket, key };
  }
  return /^https?:\/\//.test(text.trim()) ? ofAddress(text.trim()) : undefined;
}

const S3_HOST = /^(?:(?<bucket>.+)\.)?s3[.-][a-z0-9.-]*amazonaws\.com(?:\.cn)?$/;

function ofAddress(text: string): PastedObject | undefined {
  const url = URL.parse(text);
  if (url === null) return undefined;
  if (/\.console\.(?:aws\.amazon|amazonaws)\./.test(url.hostname)) return ofConsole(url);
  const host = S3_HOST.exec(url.hostname);
  const path = decoded(url.pathname.slice(1));
  if (host === null || path === undefined) return undefined;
  // the bucket is in the name of the host, or the first part of the path
  return named(host.groups?.['bucket'] === undefined ? path : `${host.groups['bucket']}/${path}`);
}

function named(path: string): PastedObject | undefined {
  const { bucket, key } = /^(?<bucket>[^/]+)\/(?<key>[\s\S]+)$/.exec(path)?.groups ?? {};
  return bucket === undefined || key === undefined ? undefined : { bucket, key };
}

function ofConsole({ pathname, searchParams }: URL): PastedObject | undefined {
  const bucket = /\/s3\/object\/([^/]+)/.exec(pathname)?.[1];
  const key = searchParams.get('prefix') ?? '';
  return bucket === undefined || key === '' ? undefined : { bucket, key };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
