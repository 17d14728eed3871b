/**
 * The source `webhook`: a store posts its events to Tally's own receiver, so that nothing is made in AWS. What lets it post is a token,
 * of which the bucket's record has the hash:
 *
 *   made ──► valid, beside the one before it ──a second one is made──► gone
 *
 * So a store goes on posting while it gets a new one.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { BucketRecord } from '../../records/bucket.ts';
import { updateRecord, refs } from '../../store/stored.ts';
import type { WithPorts } from '../../store/store.ts';
import type { Desired } from './look.ts';

/** The present one, and the one before. */
const TOKENS_MAX = 2;
/** No number of guesses finds one. */
const TOKEN_BYTES = 32;

/** Nothing of AWS is on its way. */
export const desiredWebhook = (): Desired => ({ queues: [] });

/**
 * Stores a new token, and resolves with it: it exists nowhere else. Undefined: `isWanted` says of the bucket's record that it needs
 * none, or the bucket is not connected. Throws the store's fault.
 */
export async function newWebhookToken(
  { state, clock }: WithPorts<'state' | 'clock'>,
  bucket: string,
  isWanted: (record: BucketRecord) => boolean = () => true,
): Promise<string | undefined> {
  // its prefix and its digits are what logs mask (base/masked-secrets.ts)
  const token = `qe_${randomBytes(TOKEN_BYTES).toString('hex')}`;
  const made = { hash: hashOf(token), createdAtMs: clock.nowMs() };
  const after = await updateRecord(state, refs.bucket(bucket), (record) =>
    record !== undefined && record.source === 'webhook' && isWanted(record)
      ? { ...record, webhookTokens: [...(record.webhookTokens ?? []), made].slice(-TOKENS_MAX) }
      : undefined,
  );
  return after && token;
}

/** Whether the token lets its holder post events of the bucket. It takes the same time however much of it is right. */
export function isWebhookToken(record: Pick<BucketRecord, 'source' | 'webhookTokens'> | undefined, token: string): boolean {
  if (record?.source !== 'webhook') return false;
  const given = Buffer.from(hashOf(token), 'hex');
  return (record.webhookTokens ?? []).some(({ hash }) => {
    const stored = Buffer.from(hash, 'hex');
    return stored.length === given.length && timingSafeEqual(stored, given);
  });
}

/** What is stored of a token. A plain hash suffices: 256 random bits cannot be guessed, however fast the hash is. */
function hashOf(token: string): string {
  return createHash('sha256').update('tally-webhook').update(token).digest('hex');
}
