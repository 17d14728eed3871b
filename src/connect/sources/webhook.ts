/**
 * The source `webhook`: a store posts its events to Tally's own receiver, so Tally creates nothing in AWS. A token lets it post; the
 * bucket's record keeps the token's hash:
 *
 *   created ──► valid, beside the previous one ──two more rotations──► gone
 *
 * So the store can keep posting while its token is replaced.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { BucketRecord } from '../../records/bucket.ts';
import { updateRecord, refs } from '../../store/stored.ts';
import type { WithPorts } from '../../store/store.ts';
import type { Desired } from './look.ts';

/** The present token and the one before. */
const TOKENS_MAX = 2;
/** Too many to guess. */
const TOKEN_BYTES = 32;

/** Nothing in AWS is on the events' path. */
export const desiredWebhook = (): Desired => ({ queues: [] });

/**
 * Stores a new token's hash, and resolves with the token, which exists nowhere else; undefined if the bucket is not connected or
 * `isWanted` refuses its record. Throws the store's fault.
 */
export async function newWebhookToken(
  { state, clock }: WithPorts<'state' | 'clock'>,
  bucket: string,
  isWanted: (record: BucketRecord) => boolean = () => true,
): Promise<string | undefined> {
  // its prefix and its digits are what logs mask (base/secrets.ts)
  const token = `qe_${randomBytes(TOKEN_BYTES).toString('hex')}`;
  const made = { hash: hashOf(token), createdAtMs: clock.nowMs() };
  const after = await updateRecord(state, refs.bucket(bucket), (record) =>
    record !== undefined && record.source === 'webhook' && isWanted(record)
      ? { ...record, webhookTokens: [...(record.webhookTokens ?? []), made].slice(-TOKENS_MAX) }
      : undefined,
  );
  return after && token;
}

/** Whether the token lets its holder post the bucket's events. It takes the same time no matter how much of the token is right. */
export function isWebhookToken(record: Pick<BucketRecord, 'source' | 'webhookTokens'> | undefined, token: string): boolean {
  if (record?.source !== 'webhook') return false;
  const given = Buffer.from(hashOf(token), 'hex');
  return (record.webhookTokens ?? []).some(({ hash }) => {
    const stored = Buffer.from(hash, 'hex');
    return stored.length === given.length && timingSafeEqual(stored, given);
  });
}

/** The stored form of a token. A plain hash suffices, because 256 random bits cannot be guessed, however fast the hash is. */
function hashOf(token: string): string {
  return createHash('sha256').update('tally-webhook').update(token).digest('hex');
}
