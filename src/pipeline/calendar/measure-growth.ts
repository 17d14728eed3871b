/** Records once a day how many objects and bytes each bucket has in the index, after the sums that the store keeps were compared with the objects. */
import { dayOf, withDay, withoutDay, type GrowthDay, type MissedDay } from '../../domain/series/growth.ts';
import type { ObjectIndex, ObjectMaintenance } from '../ports/object-index.ts';
import type { ObjectUsage } from '../ports/object-usage.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { DueOf, Visit } from './sweep.ts';
import type { WithPorts } from '../ports/ports.ts';

interface GrowthDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly objects: Pick<ObjectIndex, 'identities'>;
  readonly usage: Pick<ObjectUsage, 'usage'>;
  readonly maintenance: Pick<ObjectMaintenance, 'correctSums'>;
}

type Found = Omit<GrowthDay, 'day'> | Omit<MissedDay, 'day'>;

/** Less than the 15 s of a request to OpenSearch. Of a bucket that takes longer, this is what is recorded on this day. */
const TIME_LIMIT_MS = 10_000;
/** Writes keep the sums and the objects equal, in one transaction. */
const ADVICE =
  'Usage showed wrong numbers until now; searches did not. Report this as a bug, unless something else has written the index file.';
/** More than the storage classes of S3. */
const CLASSES_MAX = 1_000;
/** So long a new bucket may take until all of it is in the index. Its first day would be the beginning of that. */
const FILLING_MS = 86_400_000;

/** Creates the visit of a bucket, and the function that says which buckets this process has not recorded today. */
export function createMeasureGrowth({ state, objects, usage, maintenance, clock, telemetry }: GrowthDependencies): {
  readonly visit: Visit;
  readonly dueOf: DueOf;
} {
  /** The day of each bucket that was recorded last, as far as this process knows. */
  const known = new Map<string, string>();

  async function measure(bucket: string, nowMs: number, signal: AbortSignal | undefined): Promise<Found> {
    const [index] = await objects.identities([bucket], signal);
    // while its index is missing, the bucket has not shrunk
    if (index === undefined) return { reason: 'index-missing' };
    const limits = { limit: CLASSES_MAX, timeLimitMs: TIME_LIMIT_MS };
    const rows = await usage.usage({ bucket, prefix: '', by: 'class', nowMs, withoutTimes: true, ...limits }, signal);
    return rows === 'too-slow' ? { reason: rows } : { objects: sumOf(rows, 'objects'), bytes: sumOf(rows, 'bytes') };
  }

  /** A comparison that fails is made again on the next day, and keeps no growth from being recorded. */
  async function correctSums(bucket: string, signal: AbortSignal | undefined): Promise<void> {
    try {
      for (let isMore = true; isMore;) {
        const { more = false, ...found } = (await maintenance.correctSums(bucket, signal)) ?? {};
        if ('groups' in found)
          telemetry.error('stored sums differed from the objects of the bucket, and were corrected', { bucket, ...found, advice: ADVICE });
        isMore = more;
      }
    } catch (error) {
      signal?.throwIfAborted();
      telemetry.requestFailed(`compare the stored sums of ${bucket}`, error);
    }
  }

  async function note(bucket: string, found: GrowthDay | MissedDay): Promise<void> {
    await updateRecord(
      state,
      refs.growth(bucket),
      (record = { bucket, days: [] }) => ('reason' in found ? withoutDay(record, found) : withDay(record, found)),
      'soon',
    );
  }

  return {
    async visit({ bucket, createdAtMs, lastComparedAtMs }, signal) {
      const nowMs = clock.nowMs();
      const day = dayOf(nowMs);
      if (lastComparedAtMs === undefined && nowMs - createdAtMs < FILLING_MS) return undefined;
      const stored = await readRecord(state, refs.growth(bucket), signal);
      if (stored?.days.at(-1)?.day !== day) {
        await correctSums(bucket, signal);
        const found = await measure(bucket, nowMs, signal);
        await note(bucket, { day, ...found });
        // it may be there again later on this day
        if ('reason' in found && found.reason === 'index-missing') return undefined;
      }
      known.set(bucket, day);
      return 0;
    },
    dueOf: () => {
      const day = dayOf(clock.nowMs());
      // also forgets the buckets that are not connected any more
      for (const [bucket, of] of known) if (of !== day) known.delete(bucket);
      return Promise.resolve(({ bucket }) => known.get(bucket) !== day);
    },
  };
}

function sumOf<Name extends string>(rows: readonly Readonly<Record<Name, number>>[], name: Name): number {
  return rows.reduce((sum, row) => sum + row[name], 0);
}
