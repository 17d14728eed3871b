import { createHash } from 'node:crypto';
import { z } from 'zod';

/** Gaps: changes that a source did not tell. Stored; a reconcile that began after `lastSeenMs` closes one. */

export const gapKinds = ['bulk-delete', 'lifecycle', 'loss'] as const;
export type GapKind = (typeof gapKinds)[number];

export const gapSchema = z.object({
  id: z.string(),
  bucket: z.string(),
  kind: z.enum(gapKinds),
  /** Only keys below this prefix are concerned; absent: the whole bucket. */
  prefix: z.string().optional(),
  /** Why it was opened, in a few words (`dead letter: record.key-missing`). The latest reason wins. */
  reason: z.string(),
  firstSeenMs: z.number(),
  lastSeenMs: z.number(),
  count: z.number(),
  state: z.enum(['open', 'closing', 'closed']),
  /** The job that is closing or has closed it. */
  jobId: z.string().optional(),
  closedAtMs: z.number().optional(),
});
export type GapRecord = z.infer<typeof gapSchema>;

/** What is seen of a gap: one report of many that one record sums up. */
export interface GapSighting {
  readonly bucket: string;
  readonly kind: GapKind;
  readonly prefix?: string;
  readonly reason: string;
  readonly seenAtMs: number;
}

/** One open gap record stands for each (bucket, kind, prefix). */
export function gapId(sighting: Pick<GapSighting, 'bucket' | 'kind' | 'prefix'>): string {
  const prefix = sighting.prefix ?? '';
  const suffix = prefix === '' ? '' : `:${createHash('sha256').update(prefix).digest('hex').slice(0, 16)}`;
  return `gap:${sighting.bucket}:${sighting.kind}${suffix}`;
}

/** The record after `count` sightings, the latest of which is given: opens a new or closed gap, extends an open one. A later sighting puts a closing gap back to open. */
export function withSighting(current: GapRecord | undefined, sighting: GapSighting, count: number): GapRecord {
  const fresh = current === undefined || current.state === 'closed';
  return {
    id: gapId(sighting),
    bucket: sighting.bucket,
    kind: sighting.kind,
    ...(sighting.prefix !== undefined && { prefix: sighting.prefix }),
    reason: sighting.reason,
    firstSeenMs: fresh ? sighting.seenAtMs : Math.min(current.firstSeenMs, sighting.seenAtMs),
    lastSeenMs: fresh ? sighting.seenAtMs : Math.max(current.lastSeenMs, sighting.seenAtMs),
    count: (fresh ? 0 : current.count) + count,
    state: 'open',
  };
}
