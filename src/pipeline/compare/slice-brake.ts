/** What the brake of a job leaves of the writes of one slice. */
import { compareKeys } from '../../domain/documents/key-order.ts';
import type { Ending, PlannedWrite, SliceWork } from './settle-slice.ts';

/** Where the brake cuts the slice. */
export interface Brake {
  readonly beforeKey: string;
  readonly waiting: number;
}

interface Cut {
  readonly allowed: readonly PlannedWrite[];
  readonly held: readonly Ending[];
  readonly brake?: Brake;
}

/** Reserves the tombstones among the writes; resolves with those that were not granted. */
export async function refusedByBrake(planned: readonly PlannedWrite[], work: SliceWork): Promise<readonly PlannedWrite[]> {
  const tombstones = planned.filter(isTombstone);
  if (tombstones.length === 0) return [];
  await work.earlierEnded();
  return tombstones.slice(await work.tombstones.reserve(tombstones.length));
}

/** What the brake leaves of the planned writes, given the tombstones that it refused: all the others, or those before the first of them. */
export function cutByBrake(planned: readonly PlannedWrite[], refused: readonly PlannedWrite[], { tombstones }: SliceWork): Cut {
  const [first] = refused;
  if (first === undefined) return { allowed: planned, held: [] };
  if (!tombstones.holdsBack()) return { allowed: planned, held: [], brake: { beforeKey: first.finding.key, waiting: refused.length } };
  const left = new Set(refused);
  return {
    allowed: planned.filter((each) => !left.has(each)),
    held: refused.map(({ ending }) => ({ ...ending, effect: 'held' })),
  };
}

/** Whether the write deletes a document, if the store accepts it. */
export function isTombstone({ ending }: PlannedWrite): boolean {
  return ending.effect === 'tombstone';
}

/** The key of a planned write, and of an ending. */
export const byFinding = ({ finding }: PlannedWrite): string => finding.key;
export const byKey = ({ key }: Ending): string => key;

/** What comes before the key at which the brake cuts the slice; all of it without a cut. */
export function beforeBrake<Item>(items: readonly Item[], brake: Brake | undefined, keyOf: (item: Item) => string): readonly Item[] {
  return brake === undefined ? items : items.filter((item) => compareKeys(keyOf(item), brake.beforeKey) < 0);
}
