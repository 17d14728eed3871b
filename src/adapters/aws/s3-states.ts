/** Maps answers of S3 about an object to its state in the domain. */
import type { PresentState } from '../../domain/documents/document.ts';
import { presentState } from './s3-ask.ts';
import type { HeadOutput } from './s3-head.ts';

/**
 * The class of an object whose HEAD names none: S3 sends the header for every other class, and compatible stores that know
 * classes do the same. https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
 */
const UNNAMED_CLASS = 'STANDARD';

/** The state that an answer to HEAD describes. */
export function stateOfHead(head: HeadOutput): PresentState {
  const expiresAtMs = Date.parse(/expiry-date="([^"]+)"/.exec(head.Expiration ?? '')?.[1] ?? '');
  return {
    ...presentState({ ...head, sizeBytes: head.ContentLength, StorageClass: head.StorageClass ?? UNNAMED_CLASS }),
    // S3 itself returns the version id `null` for objects of a bucket whose versioning is suspended
    ...(head.VersionId !== undefined && { versionId: head.VersionId }),
    ...(!Number.isNaN(expiresAtMs) && { expiresAtMs }),
    ...(head.ContentType !== undefined && { contentType: head.ContentType }),
    userMetadata: userMetadataOf(head.Metadata ?? {}),
  };
}

/** S3 returns values that are not ASCII as encoded words (RFC 2047), which the SDK does not decode. */
function userMetadataOf(metadata: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, decodedWords(value)]));
}

const WORD = String.raw`=\?utf-8\?(?:b\?([a-z0-9+/]*={0,2})|q\?((?:[^?=\s]|=[0-9a-f]{2})*))\?=`;
const WORDS = new RegExp(WORD, 'gi');
const ONLY_WORDS = new RegExp(`^${WORD}(?:\\s+${WORD})*$`, 'i');

/** Decodes a value that consists only of encoded words in UTF-8. Returns any other value unchanged. */
export function decodedWords(value: string): string {
  if (!ONLY_WORDS.test(value)) return value;
  const bytes = [...value.matchAll(WORDS)].map(([, base64, quoted]) =>
    base64 === undefined ? bytesOfQuoted(quoted ?? '') : Buffer.from(base64, 'base64'),
  );
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(bytes));
  } catch {
    return value;
  }
}

function bytesOfQuoted(text: string): Buffer {
  const bytes = text.replaceAll('_', ' ').replaceAll(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}
