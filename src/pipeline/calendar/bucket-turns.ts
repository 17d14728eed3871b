/**
 * Visits many buckets so that those that hang do not delay the others: when three buckets of a region had no answer in a round, its
 * other buckets come after those of all other regions. The next round asks the region again.
 */
import type { FaultCode } from '../../domain/fault.ts';
import type { BucketLocation } from '../ports/storage.ts';

/** Three buckets are no chance: each of them may have waited for its time-out. */
const UNANSWERED_MAX = 3;

/** What a visit found: it is done, or the bucket is to be visited after the others. `later` is not allowed at the second visit. */
export type Turn = 'done' | 'later';

/** Visits each item, `atOnce` side by side, and then once more those that were put off. Rejects with what a visit throws. */
export async function visitInTurn<Item>(
  items: readonly Item[],
  atOnce: number,
  visit: (item: Item, isPutOff: boolean) => Promise<Turn>,
): Promise<void> {
  const putOff: Item[] = [];
  await sideBySide(items, atOnce, async (item) => void ((await visit(item, false)) === 'later' && putOff.push(item)));
  await sideBySide(putOff, atOnce, async (item) => void (await visit(item, true)));
}

async function sideBySide<Item>(items: readonly Item[], atOnce: number, visit: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  async function visitNext(): Promise<void> {
    for (const item of left) await visit(item);
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, visitNext));
}

/** What the visits of one round show about the regions. */
export interface RegionNotes {
  /** Whether the region did not answer for several buckets, and for none since. */
  hangs(bucket: Pick<BucketLocation, 'region'>): boolean;
  /** Notes how a visit ended that needed S3. Any answer, even a refusal, shows that the region works. */
  visited(bucket: Pick<BucketLocation, 'region'>, fault?: FaultCode): void;
}

/** Creates the notes of one round. */
export function createRegionNotes(): RegionNotes {
  const unanswered = new Map<string, number>();
  return {
    hangs: ({ region }) => (unanswered.get(region) ?? 0) >= UNANSWERED_MAX,
    visited({ region }, fault) {
      if (fault === 's3.unavailable' || fault === 'connect.unavailable') unanswered.set(region, (unanswered.get(region) ?? 0) + 1);
      else unanswered.delete(region);
    },
  };
}
