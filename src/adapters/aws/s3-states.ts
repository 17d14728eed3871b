/** What S3's answers say of an object, in the domain's words. */
import type { HeadObjectCommandOutput } from '@aws-sdk/client-s3';
import type { PresentState } from '../../domain/documents/document.ts';
import { presentState } from './s3-ask.ts';

/** All that a HEAD says. */
export function stateOfHead(head: HeadObjectCommandOutput): PresentState {
  const expiresAtMs = Date.parse(/expiry-date="([^"]+)"/.exec(head.Expiration ?? '')?.[1] ?? '');
  return {
    ...presentState({ ...head, sizeBytes: head.ContentLength }),
    // `null` is what S3 itself calls the version of an object in a bucket whose versioning is suspended
    ...(head.VersionId !== undefined && { versionId: head.VersionId }),
    ...(!Number.isNaN(expiresAtMs) && { expiresAtMs }),
    ...(head.ContentType !== undefined && { contentType: head.ContentType }),
    userMetadata: userMetadataOf(head.Metadata ?? {}),
  };
}

/** S3 tells what is not ASCII in the encoded words of RFC 2047; the SDK leaves them as they are. */
function userMetadataOf(metadata: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, decodedWords(value)]));
}

const WORD = String.raw`=\?utf-8\?(?:b\?([a-z0-9+/]*={0,2})|q\?((?:[^?=\s]|=[0-9a-f]{2})*))\?=`;
const WORDS = new RegExp(WORD, 'gi');
const ONLY_WORDS = new RegExp(`^${WORD}(?:\\s+${WORD})*$`, 'i');

/** A value that is nothing but encoded words of UTF-8, decoded; any other as it is. */
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
