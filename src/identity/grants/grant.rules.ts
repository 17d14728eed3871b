/**
 * Grants: who may read which keys. They are additive: there are no denials, and order doesn't matter. A person may read the union of what
 * is granted to the person, to the person's groups, and to everyone.
 */
import { z } from 'zod';
import { isBucketName } from '../../base/bucket-name.ts';
import { hasSecret } from '../../base/secrets.ts';
import { mergedParts, PARTS_MAX, type BucketPart, type Readable } from '../../store/readable.rules.ts';

/** Who may read, in any form that people write: an address has at most 254 characters (RFC 5321), and half of a surrogate pair is no text. */
export const WHO =
  /^(?:everyone|user:[!-?A-~]{1,64}@[A-Za-z0-9.-]{1,189}|group:(?:[ -~\u00a0-\ud7ff\ue000-\uffff]|[\ud800-\udbff][\udc00-\udfff]){1,256})$/;
/** The longest key that S3 has. https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html */
const KEY_BYTES_MAX = 1_024;

/** A grant as it is stored and shown: the texts that people write, in canonical form. */
export const grantSchema = z.object({
  who: z.string().describe('Who may read: `user:EMAIL`, `group:VALUE` or `everyone`.'),
  where: z.string().describe('What may be read: `BUCKET`, `BUCKET/PREFIX`, or `*` for every bucket.'),
  granted_by: z.string().describe('Who granted it.'),
  created_at: z.string(),
});
export type Grant = z.infer<typeof grantSchema>;

/** A grantee in canonical form: addresses are in lower case. */
export function canonicalWho(who: string): string {
  return who.startsWith('user:') ? who.toLowerCase() : who;
}

/** Whether something can be granted to a group of this name. */
export function isGroup(name: string): boolean {
  return WHO.test(`group:${name}`) && !hasSecret(name);
}

/** Parses what is granted, or says what is wrong with the text. `everything`: every bucket. */
export function parseScope(text: string): BucketPart | 'everything' | { readonly mistake: string } {
  if (text === '*') return 'everything';
  const [bucket = '', ...rest] = text.split('/');
  const prefix = rest.join('/');
  if (!isBucketName(bucket)) return { mistake: 'must be BUCKET, BUCKET/PREFIX, or * for every bucket' };
  if (!prefix.isWellFormed()) return { mistake: 'has a prefix with half of a surrogate pair, which is not Unicode text' };
  if (Buffer.byteLength(prefix) > KEY_BYTES_MAX) return { mistake: `has a prefix of more than ${KEY_BYTES_MAX} bytes, which no key has` };
  return { bucket, prefix };
}

/** A part's canonical text. */
export function formatScope(part: BucketPart | 'everything'): string {
  if (part === 'everything') return '*';
  return part.prefix === '' ? part.bucket : `${part.bucket}/${part.prefix}`;
}

/** What is granted, in canonical form. */
export const whereSchema = z.string().transform((text, context) => {
  const part = parseScope(text);
  if (part === 'everything' || !('mistake' in part)) return formatScope(part);
  context.addIssue(part.mistake);
  return z.NEVER;
});

/** The person against whom grants are matched. */
export interface Reader {
  readonly email: string;
  readonly emailVerified: boolean;
  readonly groups?: readonly string[] | undefined;
}

/** The grantees that match this person. An address counts only if the issuer verified it. */
export function granteesMatching({ email, emailVerified, groups = [] }: Reader): readonly string[] {
  return ['everyone', ...(emailVerified ? [`user:${email.toLowerCase()}`] : []), ...groups.map((group) => `group:${group}`)];
}

/** The union of what is granted. `tooMany`: more than PARTS_MAX parts remain after merging, and the person can read none of them. */
export function unionOf(granted: readonly (BucketPart | 'everything')[]): { readonly readable: Readable; readonly tooMany: boolean } {
  const parts: BucketPart[] = [];
  for (const part of granted) {
    if (part === 'everything') return { readable: 'everything', tooMany: false };
    parts.push(part);
  }
  const merged = mergedParts(parts);
  return merged.length > PARTS_MAX ? { readable: [], tooMany: true } : { readable: merged, tooMany: false };
}
