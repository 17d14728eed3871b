/** Pages of ListObjectsV2 as S3 writes them. */
import type { Contents, ListedEntry, Slice } from './contents.ts';

export interface PageRequest extends Slice {
  readonly bucket: string;
  /** EncodingType=url. */
  readonly isEncoded: boolean;
}

/** The body of a page, and how many keys are in it. */
export interface Page {
  readonly body: string;
  readonly keys: number;
}

/** Renders a page of the contents. */
export function renderPage(contents: Contents, request: PageRequest): Page {
  const { entries, isTruncated } = contents.slice(request);
  const encode = request.isEncoded ? urlEncoded : xmlEscaped;
  const head = headOf(request, { keys: entries.length, isTruncated, last: entries.at(-1)?.key });
  return { body: head + entries.map((entry) => objectXml(entry, encode)).join('') + END, keys: entries.length };
}

export const END = '</ListBucketResult>';

interface PageFacts {
  readonly keys: number;
  readonly isTruncated: boolean;
  /** The key that the next page begins after. */
  readonly last: string | undefined;
}

/** A page up to its objects. */
export function headOf(request: PageRequest, { keys, isTruncated, last }: PageFacts): string {
  const encode = request.isEncoded ? urlEncoded : xmlEscaped;
  let body = `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${request.bucket}</Name><Prefix>${encode(request.prefix)}</Prefix>`;
  if (request.after !== '') body += `<StartAfter>${encode(request.after)}</StartAfter>`;
  body += `<KeyCount>${keys}</KeyCount><MaxKeys>${request.limit}</MaxKeys>`;
  if (request.isEncoded) body += '<EncodingType>url</EncodingType>';
  body += `<IsTruncated>${isTruncated}</IsTruncated>`;
  if (isTruncated && last !== undefined) body += `<NextContinuationToken>${tokenOf(last)}</NextContinuationToken>`;
  return body;
}

/** One object of a page. */
export function objectXml({ key, state }: ListedEntry, encode: (text: string) => string): string {
  return `<Contents><Key>${encode(key)}</Key><LastModified>${new Date(state.lastModifiedMs).toISOString()}</LastModified><ETag>&quot;${state.etag}&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType><Size>${state.sizeBytes}</Size><StorageClass>${state.storageClass}</StorageClass></Contents>`;
}

/** After which key a continuation goes on. */
export function keyOfToken(token: string): string {
  return Buffer.from(token, 'base64url').toString('utf8');
}

function tokenOf(key: string): string {
  return Buffer.from(key).toString('base64url');
}

/** As S3 does: like a form, with slashes left alone. */
export function urlEncoded(text: string): string {
  if (/^[\w./*-]*$/.test(text)) return text;
  return encodeURIComponent(text)
    .replaceAll('%20', '+')
    .replaceAll('%2F', '/')
    .replaceAll(/[!'()~]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

function xmlEscaped(text: string): string {
  // what XML 1.0 has no form for, S3 writes as references all the same
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[<>&"\u0000-\u001f\u007f\ufffe\uffff]/g, (sign) => `&#x${sign.charCodeAt(0).toString(16)};`);
}
