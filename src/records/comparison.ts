/** What a comparison of bucket and index found: counts, examples, and what the bucket should no longer hold. */
import { z } from 'zod';
import { countText, sizeText } from '../base/texts.ts';

const count = z.int();

/**
 * What a reconcile found and did, summed over a job's turns. Writes count once the index has taken them, and everything else when its
 * slice is committed. So a key whose slice is compared again counts once, because it is equal by then. What the API says of each count
 * stands here too.
 *
 *   listed = equal + differed, and differed = incomplete + missing + stale + in_flight (of listed keys)
 */
export const countsSchema = z.object({
  listed: count.describe('Objects in the listing.'),
  scanned: count.describe('Live documents in the index scan.'),
  /** Listed objects that were not equal. */
  differed: count,
  incomplete: count.describe('Equal objects whose document lacks a field that the listing has. This is not drift.'),
  unenriched: count.describe(
    "Equal objects whose document lacks user metadata or tags that the bucket's `enrich` asks for. This is not drift.",
  ),
  missing: count.describe('Objects that the index did not have.'),
  stale: count.describe('Objects whose document differed from the bucket.'),
  phantom: count.describe('Live documents whose object was not in the bucket.'),
  /** Differences whose document has a clock of D − M or later: live events handle them. */
  in_flight: count.describe('Objects that changed during the comparison. This is not drift.'),
  written: count.describe('Documents written, not counting tombstones.'),
  tombstones: count.describe('Documents deleted.'),
  held: count.describe('Deletions that the limit held back; they wait for a person.'),
  refused: count.describe('Documents that the index refused because of an error in the document itself. `examples` names them.'),
  bytes_listed: z.number().min(0).describe('The total size of the listed objects.'),
  list_requests: count.describe('LIST requests sent to S3.'),
  head_requests: count.describe('HEAD requests sent to S3.'),
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
  in_flight: 0,
  written: 0,
  tombstones: 0,
  held: 0,
  refused: 0,
  bytes_listed: 0,
  list_requests: 0,
  head_requests: 0,
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
export const differenceKinds = ['missing', 'stale', 'phantom', 'incomplete', 'in_flight'] as const;
export type DifferenceKind = (typeof differenceKinds)[number];

/** The lists of examples: one for each kind of difference, one of documents that lack enrichment, and one of those that the index refused. */
export const exampleKinds = [...differenceKinds, 'unenriched', 'refused'] as const;
export type ExampleKind = (typeof exampleKinds)[number];

/** How many examples of each kind a job keeps: enough to see a pattern, and few enough for a record that is stored every five seconds. */
export const EXAMPLES_MAX = 20;

/** An example of a difference. */
const exampleSchema = z.object({
  key: z.string(),
  fields: z.array(z.string()).exactOptional().describe('Which fields differ or are missing.'),
  reason: z.string().exactOptional().describe('Why the index refused the document.'),
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

/** What a bucket should no longer hold by its own rules, as it was when the whole bucket was last compared. */
export const overdueSchema = z
  .object({
    expired: z
      .object({ rule: z.string(), objects: z.int().min(0), bytes: z.number().min(0) })
      .optional()
      .describe('What lifecycle rules should have expired more than three days ago, for the rule with the most leftovers.'),
    uploads: z
      .object({
        count: z.int().min(0),
        is_more: z.boolean().describe('Only the first thousand are counted.'),
        oldest_at: z.string().meta({ format: 'date-time' }),
      })
      .optional()
      .describe('Multipart uploads that were neither completed nor aborted.'),
  })
  .describe(
    'What the bucket should no longer hold, where Tally may read its lifecycle rules and list its uploads. Only for jobs that compared the whole bucket.',
  );
export type Overdue = z.infer<typeof overdueSchema>;

/** A part of a sentence. */
export function expiredText({ rule, objects, bytes }: NonNullable<Overdue['expired']>): string {
  return `${countText(objects, 'object')} (${sizeText(bytes) ?? ''}) should have expired more than 3 days ago by the lifecycle rule ${rule}`;
}
