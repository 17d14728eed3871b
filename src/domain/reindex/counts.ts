import { z } from 'zod';

/**
 * What a reconcile found and did, added up over turns, ranges and the job. The kinds are the design's:
 *
 *   listed = equal + incomplete + missing + stale + inFlight (of listed keys)
 *   phantom: the index has it, the bucket does not
 */
export const countsSchema = z.object({
  /** Objects that the listing named. */
  listed: z.number(),
  /** Live documents that the scan named. */
  scanned: z.number(),
  equal: z.number(),
  /** Equal but for fields that the document lacks; not drift. */
  incomplete: z.number(),
  missing: z.number(),
  stale: z.number(),
  phantom: z.number(),
  /** A difference whose document is at or above D − M: the live path's business, not drift. */
  inFlight: z.number(),
  /** Documents written, tombstones apart. */
  written: z.number(),
  tombstones: z.number(),
  /** Phantoms that the brake kept from becoming tombstones. */
  held: z.number(),
  /** Sum of the sizes of the objects listed. */
  bytesListed: z.number(),
  listRequests: z.number(),
  headRequests: z.number(),
});
export type ReconcileCounts = z.infer<typeof countsSchema>;

export const noCounts: ReconcileCounts = {
  listed: 0,
  scanned: 0,
  equal: 0,
  incomplete: 0,
  missing: 0,
  stale: 0,
  phantom: 0,
  inFlight: 0,
  written: 0,
  tombstones: 0,
  held: 0,
  bytesListed: 0,
  listRequests: 0,
  headRequests: 0,
};

/** The sum, field by field. */
export function addCounts(a: ReconcileCounts, b: Partial<ReconcileCounts>): ReconcileCounts {
  const sum = { ...a };
  for (const name of countsSchema.keyof().options) sum[name] += b[name] ?? 0;
  return sum;
}

/** The kinds of difference that a report shows examples of. */
export const differenceKinds = ['missing', 'stale', 'phantom', 'incomplete', 'inFlight'] as const;
export type DifferenceKind = (typeof differenceKinds)[number];

/** Examples of one kind that a job keeps: enough to see a pattern, small enough for a state record. */
export const EXAMPLES_MAX = 100;

/** One difference, for people: what the bucket says and what the index says. */
export const exampleSchema = z.object({
  key: z.string(),
  /** Which fields differ (`etag`, `size`, `storage_class`, `last_modified`), or are lacking. */
  fields: z.array(z.string()).exactOptional(),
});
export type DifferenceExample = z.infer<typeof exampleSchema>;

export const examplesSchema = z.partialRecord(z.enum(differenceKinds), z.array(exampleSchema));
export type DifferenceExamples = z.infer<typeof examplesSchema>;

/** The first of both, at most `max` of a kind. */
export function addExamples(a: DifferenceExamples, b: DifferenceExamples, max = EXAMPLES_MAX): DifferenceExamples {
  const sum: { [Kind in DifferenceKind]?: DifferenceExample[] } = {};
  for (const kind of differenceKinds) {
    const both = [...(a[kind] ?? []), ...(b[kind] ?? [])].slice(0, max);
    if (both.length > 0) sum[kind] = both;
  }
  return sum;
}
