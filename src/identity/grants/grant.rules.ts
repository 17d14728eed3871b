/**
 * Grants: who may read which keys. They are additive: there are no denials, and order doesn't matter. A person may read the union of what
 * is granted to the person, to the person's groups, and to everyone.
 */
import { z } from 'zod';
import { isBucketName } from '../../base/bucket-name.ts';
import { hasSecret } from '../../base/masked-secrets.ts';
import { mergedParts, PARTS_MAX, type BucketPart, type Readable } from '../../store/readable.rules.ts';

/** RFC 5321. */
const EMAIL_LENGTH_MAX = 254;
const EMAIL = /^[\x21-\x3f\x41-\x7e]+@[A-Za-z0-9.-]+$/;
/** The longest group name that a login stores. */
const GROUP_LENGTH_MAX = 256;
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

/** The canonical form of a grantee, or what is wrong with the text. */
export function granteeOf(text: string): string | { readonly mistake: string } {
  if (text === 'everyone') return text;
  const [, kind, name = ''] = /^(user|group):(.+)$/su.exec(text) ?? [];
  if (hasSecret(name)) return { mistake: 'must not contain an API key or a token, because it is shown' };
  if (kind === 'user' && isEmail(name)) return `user:${name.toLowerCase()}`;
  if (kind === 'group' && isGroupName(name)) return text;
  return { mistake: `must be user:EMAIL, group:VALUE with at most ${GROUP_LENGTH_MAX} characters, or everyone` };
}

/** Half of a surrogate pair is not Unicode text, so no store would preserve it. */
function isGroupName(text: string): boolean {
  return text.length <= GROUP_LENGTH_MAX && text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** Whether something can be granted to a group of this name. */
export function isGroup(name: string): boolean {
  return typeof granteeOf(`group:${name}`) === 'string';
}

function isEmail(text: string): boolean {
  return EMAIL.test(text) && text.length <= EMAIL_LENGTH_MAX;
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

/** A grantee in canonical form. */
export const whoSchema = z.string().transform((text, context) => {
  const grantee = granteeOf(text);
  if (typeof grantee === 'string') return grantee;
  context.addIssue(grantee.mistake);
  return z.NEVER;
});

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
