import { z } from 'zod';

/**
 * What a reconcile found and did, summed over a job's turns. Writes count once the index has taken them, and everything else when its
 * slice is committed. So a key whose slice is compared again counts once, because it is equal by then.
 *
 *   listed = equal + differed, and differed = incomplete + missing + stale + inFlight (of listed keys)
 */
export const countsSchema = z.object({
  /** Objects in the listing. */
  listed: z.number(),
  /** Live documents in the scan. */
  scanned: z.number(),
  /** Listed objects that were not equal. */
  differed: z.number(),
  /** Equal except for fields that the document lacks; not drift. */
  incomplete: z.number(),
  /** Equal or incomplete, but the document lacks enrichment that the bucket asks for, and it was not filled in; not drift. */
  unenriched: z.number(),
  /** The bucket has the key, the index does not. */
  missing: z.number(),
  /** Both have the key, but fields differ. */
  stale: z.number(),
  /** The index has the key, the bucket does not. */
  phantom: z.number(),
  /** Differences whose document has a clock of D − M or later: live events handle them, so they are not drift. */
  inFlight: z.number(),
  /** Documents written, not counting tombstones. */
  written: z.number(),
  tombstones: z.number(),
  /** Phantoms for which the deletion limit refused a tombstone. */
  held: z.number(),
  /** Documents that the index will never take, because of an error in the document itself. */
  refused: z.number(),
  /** Total size of the listed objects. */
  bytesListed: z.number(),
  listRequests: z.number(),
  headRequests: z.number(),
});
export type ReconcileCounts = z.infer<typeof countsSchema>;

export const noCounts: ReconcileCounts = {
  listed: 0,
  scanned: 0,
  differed: 0,
  incomplete: 0,
  unenriched: 0,
  missing: 0,
  stale: 0,
  phantom: 0,
  inFlight: 0,
  written: 0,
  tombstones: 0,
  held: 0,
  refused: 0,
  bytesListed: 0,
  listRequests: 0,
  headRequests: 0,
};

/** The counts as shown, with the number of listed keys that were equal. */
export type ShownCounts = ReconcileCounts & { readonly equal: number };

/** The counts as shown. `equal` is at least 0, because keys written ahead of the cursor have differed but do not count as listed yet. */
export function shownCounts(counts: ReconcileCounts): ShownCounts {
  return { ...counts, equal: Math.max(0, counts.listed - counts.differed) };
}

/** Read only once, because zod makes the list each time, and each page needs several sums. */
const countNames = countsSchema.keyof().options;

/** The sum, field by field. */
export function addCounts(a: ReconcileCounts, b: Partial<ReconcileCounts>): ReconcileCounts {
  const sum = { ...a };
  for (const name of countNames) sum[name] += b[name] ?? 0;
  return sum;
}

/** The kinds of difference of which a report shows examples. */
export const differenceKinds = ['missing', 'stale', 'phantom', 'incomplete', 'inFlight'] as const;
export type DifferenceKind = (typeof differenceKinds)[number];

/** The lists of examples: one for each kind of difference, one of documents that lack enrichment, and one of those that the index refused. */
export const exampleKinds = [...differenceKinds, 'unenriched', 'refused'] as const;
export type ExampleKind = (typeof exampleKinds)[number];

/** How many examples of each kind a job keeps: enough to see a pattern, and few enough for a record that is stored every five seconds. */
export const EXAMPLES_MAX = 20;

/** An example of a difference, shown to users. */
export const exampleSchema = z.object({
  key: z.string(),
  /** The fields that differ or that the document lacks (`etag`, `size`, `storage_class`, `last_modified`, `user_metadata`, `tags`). */
  fields: z.array(z.string()).exactOptional(),
  /** Why the index refused the document. */
  reason: z.string().exactOptional(),
});
export type DifferenceExample = z.infer<typeof exampleSchema>;

export const examplesSchema = z.partialRecord(z.enum(exampleKinds), z.array(exampleSchema));
export type DifferenceExamples = z.infer<typeof examplesSchema>;

/** The examples of `a`, then those of `b` with other keys, at most EXAMPLES_MAX of each kind. */
export function addExamples(a: DifferenceExamples, b: DifferenceExamples): DifferenceExamples {
  const sum: { [Kind in ExampleKind]?: DifferenceExample[] } = {};
  for (const kind of exampleKinds) {
    const [known, added] = [a[kind] ?? [], b[kind] ?? []];
    // a part that is compared again finds them again
    const keys = new Set(known.map(({ key }) => key));
    const both = [...known, ...added.filter(({ key }) => !keys.has(key))].slice(0, EXAMPLES_MAX);
    if (both.length > 0) sum[kind] = both;
  }
  return sum;
}
