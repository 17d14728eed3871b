/** Reads what is known of buckets, and says how far the index of each can be relied on. */
import type { BucketRecord } from '../../domain/bucket.ts';
import { bucketStatus, type BucketStatus } from '../../domain/bucket-status.ts';
import type { CircuitRecord } from '../../domain/circuit-record.ts';
import { gapSchema, type GapRecord } from '../../domain/gaps/gap.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import { listAllEntries } from '../records/stored.ts';
import { circuitOfBucket, listCircuits } from './circuit-records.ts';

/** How many gaps one request to the store reads. */
const PAGE_GAPS = 1_000;

/** Lists the gaps of one bucket, in any state. Throws the store's fault. */
export async function gapsOf(state: StateStore, bucket: string, signal?: AbortSignal): Promise<readonly GapRecord[]> {
  const prefix = `gap:${bucket}:`;
  const found: GapRecord[] = [];
  let after = prefix;
  for (;;) {
    const entries = (await state.list('gap', { after, limit: PAGE_GAPS }, signal)).filter(({ id }) => id.startsWith(prefix));
    found.push(...entries.map(shownGap));
    if (entries.length < PAGE_GAPS) return found;
    after = entries.at(-1)?.id ?? after;
  }
}

/** Lists all gaps, in any state. Throws the store's fault. */
export async function allGaps(state: StateStore): Promise<readonly GapRecord[]> {
  return (await listAllEntries(state, 'gap')).map(shownGap);
}

/** One that this version cannot read counts as open: what it says of its bucket is not known. */
function shownGap({ id, record }: StateEntry): GapRecord {
  const { data } = gapSchema.safeParse(record);
  const [, bucket = ''] = id.split(':');
  const unread = { id, bucket, kind: 'loss', reason: 'a record that this version of Tally cannot read', state: 'open' } as const;
  return data ?? { ...unread, firstSeenMs: 0, lastSeenMs: 0, openedAtMs: 0, toldAtMs: 0, count: 1 };
}

interface Known {
  readonly circuits: readonly CircuitRecord[];
  readonly gaps: readonly GapRecord[];
  readonly nowMs: number;
  readonly compareIntervalMs: number;
}

/** The status of each bucket, in their order, from records that were read before. */
export function statusesOf(records: readonly BucketRecord[], { circuits, gaps, nowMs, compareIntervalMs }: Known): readonly BucketStatus[] {
  const byBucket = Map.groupBy(gaps, ({ bucket }) => bucket);
  return records.map((record) =>
    bucketStatus({
      record,
      waitsFor: circuitOfBucket(circuits, record),
      gaps: byBucket.get(record.bucket) ?? [],
      nowMs,
      compareIntervalMs,
    }),
  );
}

export interface BucketStatuses {
  /** Throws the store's fault. */
  of(record: BucketRecord, signal?: AbortSignal): Promise<BucketStatus>;
  /** In the order of the records. Throws the store's fault. */
  ofAll(records: readonly BucketRecord[]): Promise<readonly BucketStatus[]>;
}

interface StatusDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly compareIntervalMs: number;
}

/** Creates the functions. */
export function createBucketStatuses({ state, clock, compareIntervalMs }: StatusDependencies): BucketStatuses {
  const known = async (gaps: Promise<readonly GapRecord[]>): Promise<Known> => {
    const nowMs = clock.nowMs();
    return { gaps: await gaps, circuits: await listCircuits(state, nowMs), nowMs, compareIntervalMs };
  };
  return {
    async of(record, signal) {
      const { gaps, circuits, ...rest } = await known(gapsOf(state, record.bucket, signal));
      return bucketStatus({ record, gaps, waitsFor: circuitOfBucket(circuits, record), ...rest });
    },
    ofAll: async (records) => statusesOf(records, await known(allGaps(state))),
  };
}
