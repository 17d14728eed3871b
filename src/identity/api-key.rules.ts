/**
 * API keys: the secret and what is stored about it. A key's state follows from the clock at each reading:
 *
 *   ACTIVE ──its expiry passes──► EXPIRED ──90 days──► purged
 *      │                             │
 *      └──────────revoked────────────┴──► revoked, shown in no list ──90 days──► purged
 *
 * The secret exists only in the response that creates it. Its id and its stored hash are both hashes of it, so a key is
 * found by id, never by searching for its secret, and no store holds one.
 */
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { hasSecret } from '../base/secrets.ts';
import { UNPRINTABLE } from '../base/texts.ts';
import { keyScopes, type KeyScope, type Role } from '../base/actor.ts';
import { base62Of, hashFor, isSameText, nameFor, SECRET_DIGITS } from './tokens.rules.ts';
import type { UserRecord } from './user.rules.ts';

const KEY_PREFIX = 'qk_';
/** 62^6 is above 2^32. */
const CHECKSUM_DIGITS = 6;
/** How much of each end a fingerprint shows. 41 of the 49 characters stay unknown. */
const FINGERPRINT_DIGITS = 4;

const SECRET = /^qk_[0-9A-Za-z]{49}$/;
const ID = /^k[0-9A-Za-z]{22}$/;

const DAY_MS = 86_400_000;
export const EXPIRES_IN_DAYS_MAX = 365;
export const EXPIRES_IN_DAYS_DEFAULT = 90;
export const KEY_NAME_LENGTH_MAX = 100;
/** More than a person keeps track of; a script that forgets to revoke is stopped before it fills the store. */
export const KEYS_LIVE_MAX = 50;
/** EXPIRED keys stay listed for 90 days, so they count towards this limit. Listing a user's keys reads each of them. */
export const KEYS_LISTED_MAX = 500;
/** How many of a user's revoked keys are kept, so that the audit can recognise a revoked key's secret. */
export const KEYS_REVOKED_MAX = 50;
const KEPT_AFTER_EXPIRY_MS = 90 * DAY_MS;
/** How long before a key's expiry callers and operators are warned: enough to replace it within the next two working weeks. */
const EXPIRY_WARNING_MS = 14 * DAY_MS;

export const keyStatuses = ['ACTIVE', 'EXPIRED'] as const;
type KeyStatus = (typeof keyStatuses)[number];

/** A key as stored. A record with an unknown field is refused, because the field may restrict the key. */
export const keyRecordSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  userId: z.string(),
  /** The owner's e-mail address when the key was created or last used. */
  userEmail: z.string(),
  fingerprint: z.string(),
  secretHash: z.string(),
  scopes: z.array(z.enum(keyScopes)).readonly(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
  /** Stored at most once a minute. */
  lastUsedAtMs: z.number().optional(),
  /** Set once: a revoked key never becomes valid again. */
  revokedAtMs: z.number().optional(),
});
export type KeyRecord = z.infer<typeof keyRecordSchema>;

/** A user's keys, by which the limits are enforced, by compare-and-swap. */
export const userKeysSchema = z.object({
  userId: z.string(),
  /** In the order of their creation. */
  keys: z.array(z.object({ id: z.string(), createdAtMs: z.number(), expiresAtMs: z.number() })).readonly(),
  /** The revoked keys whose records are kept, oldest revocation first. */
  revoked: z.array(z.string()).readonly(),
});
export type UserKeys = z.infer<typeof userKeysSchema>;

/** Creates a secret from 32 random bytes: `qk_`, 43 base62 digits, and 6 digits of checksum. */
export function createSecret(random: Uint8Array): string {
  const body = `${KEY_PREFIX}${base62Of(random, SECRET_DIGITS)}`;
  return `${body}${checksumOf(body)}`;
}

/** What a text is, judging by the text alone. `mistyped`: it has a secret's form but a wrong checksum. */
type SecretForm = 'secret' | 'mistyped' | 'malformed';

/** Judges a text without surrounding white space. */
export function formOf(text: string): SecretForm {
  if (!SECRET.test(text)) return 'malformed';
  return checksumOf(text.slice(0, -CHECKSUM_DIGITS)) === text.slice(-CHECKSUM_DIGITS) ? 'secret' : 'mistyped';
}

/** The id of the key with this secret. */
export function keyIdOf(secret: string): string {
  return `k${nameFor('tally-key-id', secret)}`;
}

/** Whether a text has an id's form. Only such texts are looked up. */
export function isKeyId(text: string): boolean {
  return ID.test(text);
}

/** The stored hash of a secret. A plain hash suffices: 256 random bits cannot be guessed, however fast the hash is. */
export function secretHashOf(secret: string): string {
  return hashFor('tally-key-secret', secret).toString('hex');
}

/** Whether the secret is the record's, in a time that doesn't depend on how much of it matches. */
export function isSecretOf({ secretHash }: Pick<KeyRecord, 'secretHash'>, secret: string): boolean {
  return isSameText(secretHash, secretHashOf(secret));
}

/** The part of a secret that is safe to show, such as `qk_abcd…wxyz`. */
export function fingerprintOf(secret: string): string {
  const digits = secret.slice(KEY_PREFIX.length);
  return `${KEY_PREFIX}${digits.slice(0, FINGERPRINT_DIGITS)}…${digits.slice(-FINGERPRINT_DIGITS)}`;
}

/**
 * Whether a text can be the name of a key: 1 to 100 characters, not all of them blank, none of which is invisible or changes the
 * reading direction. A text that contains a secret cannot, because names are shown.
 */
export function isKeyName(text: string): boolean {
  const length = Array.from(text).length;
  return length >= 1 && length <= KEY_NAME_LENGTH_MAX && text.trim() !== '' && text.search(UNPRINTABLE) === -1 && !hasSecret(text);
}

interface NewKey {
  readonly secret: string;
  readonly name: string;
  readonly userId: string;
  readonly userEmail: string;
  readonly scopes: KeyRecord['scopes'];
  /** 1 to 365. */
  readonly expiresInDays: number;
  readonly nowMs: number;
}

/** A new key's record, which contains only the secret's hash. */
export function keyRecordOf({ secret, name, userId, userEmail, scopes, expiresInDays, nowMs }: NewKey): KeyRecord {
  return {
    id: keyIdOf(secret),
    name,
    userId,
    userEmail,
    fingerprint: fingerprintOf(secret),
    secretHash: secretHashOf(secret),
    scopes,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + expiresInDays * DAY_MS,
  };
}

/** Whether what the owner's last login stated (groups, the administrator role) still counts for keys. */
export function claimsCount(lastLoginAtMs: number, claimsDays: number, nowMs: number): boolean {
  return nowMs < lastLoginAtMs + claimsDays * DAY_MS;
}

/** The status at a moment. Exactly at its expiry, a key is EXPIRED. */
export function statusAt(expiresAtMs: number, nowMs: number): KeyStatus {
  return nowMs < expiresAtMs ? 'ACTIVE' : 'EXPIRED';
}

/** Whether a key that is ACTIVE now ends within 14 days. */
export function endsSoon(expiresAtMs: number, nowMs: number): boolean {
  return expiresAtMs - nowMs <= EXPIRY_WARNING_MS;
}

/** Whether a record is removed: 90 days after its expiry, or after its revocation if that was earlier. */
export function isPurged({ expiresAtMs, revokedAtMs = Infinity }: Pick<KeyRecord, 'expiresAtMs' | 'revokedAtMs'>, nowMs: number): boolean {
  return nowMs >= Math.min(expiresAtMs, revokedAtMs) + KEPT_AFTER_EXPIRY_MS;
}

/**
 * CRC-32 (ISO 3309, as in zip files) of the text before it. It finds every single wrong character and every exchange of two
 * neighbours, and scanners for leaked secrets can compute it offline.
 */
function checksumOf(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return base62Of(bytes, CHECKSUM_DIGITS);
}

/** A user's stored keys without these. */
export function withoutKeys(current: UserKeys, ids: ReadonlySet<string>): UserKeys {
  return {
    ...current,
    keys: current.keys.filter(({ id }) => !ids.has(id)),
    revoked: current.revoked.filter((id) => !ids.has(id)),
  };
}

// ── what a key may do: never more than its owner, and every key may read ───────────────────────────────────────────

/** A role from a claim is only known as of the owner's last login. After a week, it is too old for connecting or removing buckets. */
const CLAIMED_ROLE_MAX_MS = 7 * DAY_MS;

/** The scopes that a role permits. */
export function scopesOfRole(role: Role): readonly KeyScope[] {
  switch (role) {
    case 'user':
      return ['read'];
    case 'admin':
      return keyScopes;
  }
}

/** The scopes of a key that requested none: what its owner may do, without `admin`. */
export function scopesByDefault(role: Role): readonly KeyScope[] {
  return scopesOfRole(role).filter((scope) => scope !== 'admin');
}

/** The requested scopes as stored: each once, in a fixed order, with `read`. */
export function scopesAsStored(requested: readonly KeyScope[]): readonly KeyScope[] {
  return keyScopes.filter((scope) => scope === 'read' || requested.includes(scope));
}

/** What a key may do now: its scopes at creation, as far as its owner may do it. */
export function effectiveScopes(
  stored: readonly KeyScope[],
  { role, roleSource, lastLoginAtMs }: Pick<UserRecord, 'role' | 'roleSource' | 'lastLoginAtMs'>,
  nowMs: number,
): readonly KeyScope[] {
  const isOld = roleSource === 'rule' && nowMs - lastLoginAtMs > CLAIMED_ROLE_MAX_MS;
  return stored.filter((scope) => scopesOfRole(role).includes(scope) && !(scope === 'admin' && isOld));
}
