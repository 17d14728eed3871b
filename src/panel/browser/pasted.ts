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

function ofAddress(text: string): PastedObject | undefined {
  const url = URL.parse(text);
  if (url === null) return undefined;
  const path = decoded(url.pathname.slice(1));
  if (path === undefined) return undefined;
  if (url.hostname.includes('console.aws.amazon.com') || url.hostname.includes('console.amazonaws')) return ofConsole(url);
  const virtual = /^(?<bucket>.+)\.s3[.-][a-z0-9.-]*amazonaws\.com(\.cn)?$/.exec(url.hostname)?.groups?.['bucket'];
  if (virtual !== undefined) return path === '' ? undefined : { bucket: virtual, key: path };
  if (!/^s3[.-][a-z0-9.-]*amazonaws\.com(\.cn)?$/.test(url.hostname)) return undefined;
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
