/** Pages of ListObjectsV2 as S3 writes them, and as it should not. */
import type { Contents, ListedEntry, Slice } from './contents.ts';
import type { FaultKind } from './listing-faults.ts';

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

/** Renders a page of the contents, spoilt by the fault if there is one. */
export function renderPage(contents: Contents, request: PageRequest, fault?: FaultKind): Page {
  const slice = contents.slice(fault === 'restarted' ? { ...request, after: '' } : request);
  // without a prefix no key is foreign
  const entries = fault === 'foreign' && request.prefix === '' ? slice.entries : spoiltEntries(slice.entries, fault);
  const isTruncated = fault === 'empty' || slice.isTruncated;
  const encode = request.isEncoded ? urlEncoded : xmlEscaped;
  // S3 continues an empty page where it stopped, and loses nothing
  const last = fault === 'empty' ? request.after : slice.entries.at(-1)?.key;
  const head = headOf(request, { keys: entries.length, isTruncated, saysSo: fault !== 'no-end', last });
  const body = head + entries.map((entry) => objectXml(entry, encode)).join('') + END;
  return { body: fault === 'cut-xml' ? body.slice(0, cutOf(body)) : body, keys: entries.length };
}

export const END = '</ListBucketResult>';

interface PageFacts {
  readonly keys: number;
  readonly isTruncated: boolean;
  /** Whether the page says that it is truncated, or that it is not. */
  readonly saysSo: boolean;
  /** The key that the next page begins after. */
  readonly last: string | undefined;
}

/** A page up to its objects. */
export function headOf(request: PageRequest, { keys, isTruncated, saysSo, last }: PageFacts): string {
  const encode = request.isEncoded ? urlEncoded : xmlEscaped;
  let body = `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${request.bucket}</Name><Prefix>${encode(request.prefix)}</Prefix>`;
  if (request.after !== '') body += `<StartAfter>${encode(request.after)}</StartAfter>`;
  body += `<KeyCount>${keys}</KeyCount><MaxKeys>${request.limit}</MaxKeys>`;
  if (request.isEncoded) body += '<EncodingType>url</EncodingType>';
  if (saysSo) body += `<IsTruncated>${isTruncated}</IsTruncated>`;
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

/** In the middle of an object, if there is one. */
function cutOf(body: string): number {
  const middle = body.indexOf('<ETag>', Math.floor(body.length / 2));
  return middle === -1 ? Math.floor(body.length / 2) : middle;
}

function spoiltEntries(entries: readonly ListedEntry[], fault: FaultKind | undefined): readonly ListedEntry[] {
  if (fault === 'empty') return [];
  const middle = Math.floor(entries.length / 2);
  const [before, at, after] = [entries.slice(0, middle), entries[middle], entries.slice(middle + 1)];
  if (at === undefined) return entries;
  if (fault === 'swapped') return after[0] === undefined ? entries : [...before, after[0], at, ...after.slice(1)];
  if (fault === 'repeated') return [...before, at, at, ...after];
  if (fault === 'foreign') return [...entries.slice(0, -1), { ...at, key: '\u{10ffff}foreign' }];
  return entries;
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
