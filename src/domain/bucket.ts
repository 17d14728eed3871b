import { createHash } from 'node:crypto';
import { z } from 'zod';

/** How a bucket's events reach the bucket queue. */
export const bucketSources = ['notification', 'topic', 'eventbridge', 'routed'] as const;
export type BucketSource = (typeof bucketSources)[number];

/** Whether the source tells lifecycle expirations: audit trails never do, and a user's own topic need not. */
export function tellsExpirations(source: BucketSource): boolean {
  switch (source) {
    case 'notification':
    case 'eventbridge':
      return true;
    case 'topic':
    case 'routed':
      return false;
  }
}

/** Whether the source may lose events without anybody's notice: what CloudTrail sends to EventBridge is best effort. S3's own deliveries are made at least once. */
export function isBestEffort(source: BucketSource): boolean {
  return source === 'routed';
}

/** How far documents are enriched beyond what events and HEADs tell. */
export const enrichModes = ['none', 'head', 'tags'] as const;
export type EnrichMode = (typeof enrichModes)[number];

/** S3's own rules allow less; these characters are what any S3 implementation has been seen to allow. */
export const BUCKET_NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{1,253}[a-zA-Z0-9]$/;

/** Whether a text can be the name of a bucket at all (old us-east-1 names included): 3 to 255 of letters, digits, `.`, `_`, `-`. */
export function isBucketName(text: string): boolean {
  return BUCKET_NAME.test(text);
}

/** What part of an index's or alias's name stands for the bucket: the name itself where OpenSearch can take it, else `h-` + 32 hex of its SHA-256. */
export function bucketSlug(bucket: string): string {
  const plain = /^[a-z0-9.-]{3,63}$/.test(bucket) && !bucket.startsWith('h-');
  return plain ? bucket : `h-${createHash('sha256').update(bucket).digest('hex').slice(0, 32)}`;
}

export const versioningStatuses = ['unknown', 'never', 'enabled', 'suspended'] as const;

/** What GetBucketVersioning said, and when by S3's clock. `unknown` until it could be read; `never` is the only one under which a delete states its result. */
export const versioningSchema = z.object({
  status: z.enum(versioningStatuses),
  /** The Date of the answer minus the request's duration; 0 when unknown. */
  observedAtMs: z.number(),
});
export type Versioning = z.infer<typeof versioningSchema>;

/** A connected bucket, as stored. Decisions read it by id and are at most C = 10 s behind it. */
export const bucketRecordSchema = z.object({
  bucket: z.string(),
  region: z.string(),
  source: z.enum(bucketSources),
  topicArn: z.string().optional(),
  versioning: versioningSchema,
  enrich: z.enum(enrichModes),
  /** Rule 8: native events at or below this clock (microseconds) no longer write directly. 0 until a reconcile began. */
  floor: z.number(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** When region and versioning were last read. */
  checkedAtMs: z.number(),
  lastEventAtMs: z.number().optional(),
  lastReindexAtMs: z.number().optional(),
  /** Of buckets whose source does not tell expirations: when its lifecycle rules were read and what they expire was looked for. */
  lifecycle: z
    .object({
      checkedAtMs: z.number(),
      /** `unknown`: they may not be read. */
      rules: z.enum(['known', 'unknown']),
      /** Rules in force that expire present objects. */
      expiring: z.number(),
    })
    .optional(),
});
export type BucketRecord = z.infer<typeof bucketRecordSchema>;

/** Events that arrived for a bucket that is not connected: counted and shown, never indexed. */
export const unconnectedSchema = z.object({
  bucket: z.string(),
  count: z.number(),
  firstSeenMs: z.number(),
  lastSeenMs: z.number(),
});
export type UnconnectedRecord = z.infer<typeof unconnectedSchema>;
