/** The gaps of objects that failed alone: one for each key, as long as a bucket has few of them. */
import { LRUCache } from 'lru-cache';
import { gapId, gapSchema, type GapKind } from '../../domain/gaps/gap.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';

/** Above this many gaps of single keys of a bucket, one gap of the whole bucket costs less: each of them needs a job, and a job waits for a minute. */
const KEY_GAPS_MAX = 100;
/** How long what was read is used. Other workers may add as many within that time, which only adds jobs. */
const AGE_MAX_MS = 60_000;
/** A bucket's gaps that one reading considers: ten times what decides. */
const READ_MAX = 1_000;
/** How many buckets are remembered. */
const BUCKETS_MAX = 1_000;

export interface KeyGaps {
  /** The prefix of the gap for this key: the key, or undefined if the bucket has too many, so that the gap of the whole bucket is used. Throws the store's fault. */
  prefixFor(bucket: string, kind: GapKind, key: string): Promise<string | undefined>;
}

interface Known {
  readonly ids: Set<string>;
  readonly readAtMs: number;
}

/** Creates an empty memory of the key gaps of all buckets. */
export function createKeyGaps({ state, clock }: { readonly state: StateStore; readonly clock: Clock }): KeyGaps {
  const buckets = new LRUCache<string, Known>({ max: BUCKETS_MAX });

  async function knownOf(bucket: string): Promise<Known> {
    const known = buckets.get(bucket);
    if (known !== undefined && clock.monotonicMs() - known.readAtMs < AGE_MAX_MS) return known;
    const start = `gap:${bucket}:`;
    const entries = await state.list('gap', { after: start, limit: READ_MAX });
    const ids = entries.filter((entry) => entry.id.startsWith(start) && isOpenKeyGap(entry)).map(({ id }) => id);
    const read = { ids: new Set(ids), readAtMs: clock.monotonicMs() };
    buckets.set(bucket, read);
    return read;
  }

  return {
    async prefixFor(bucket, kind, key) {
      const { ids } = await knownOf(bucket);
      const id = gapId({ bucket, kind, prefix: key });
      if (!ids.has(id) && ids.size >= KEY_GAPS_MAX) return undefined;
      ids.add(id);
      return key;
    },
  };
}

/** A record that this version cannot read is left out: it must not keep the loss of another object from being stored. */
function isOpenKeyGap({ record }: StateEntry): boolean {
  const { data } = gapSchema.safeParse(record);
  return data !== undefined && data.state !== 'closed' && data.folded === true && data.prefix !== undefined;
}
