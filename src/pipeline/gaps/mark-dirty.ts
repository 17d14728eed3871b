/** The only way to a dirty mark: that something of a bucket may be missing is stored here, by compare-and-swap. */
import { z } from 'zod';
import { enrichModes } from '../../domain/bucket.ts';
import { markId, withReport, type DirtyMark, type GapReport, type ReportFacts } from '../../domain/gaps/dirty.ts';
import { lastBeginOf } from '../../domain/reindex/covers.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { WithPorts } from '../ports/ports.ts';
import { refs, updateRecord } from '../records/stored.ts';

/**
 * Resolves with the mark once the report is stored durably. A bucket that is not connected has no index that could be repaired, so a report of it is dropped. `unless`: the
 * report says nothing new about this mark. Throws the store's fault.
 */
export async function markDirty(
  { state, clock }: WithPorts<'state'> & { readonly clock: Pick<Clock, 'nowMs'> },
  report: GapReport,
  unless: (current: DirtyMark | undefined) => boolean = () => false,
): Promise<DirtyMark | undefined> {
  const known = await factsOf(state, report.bucket);
  if (known === undefined) return undefined;
  return updateRecord(state, refs.gap(markId(report.bucket, report.key)), (current) =>
    unless(current) ? current : withReport(current, report, { ...known, nowMs: clock.nowMs() }),
  );
}

const factsSchema = z.object({
  enrich: z.enum(enrichModes).catch('tags'),
  lastBeginOrder: z.number().optional().catch(undefined),
  createdAtMs: z.number().catch(0),
  repaired: z.object({ atMs: z.number(), comparingMs: z.number() }).optional().catch(undefined),
});

/**
 * What a mark needs of its bucket's record, which must be read after the loss was noticed; undefined: the bucket is not connected. A
 * record that this version cannot read must not keep a loss from being stored, and counts as one that asks for tags.
 */
async function factsOf(state: StateStore, bucket: string): Promise<Omit<ReportFacts, 'nowMs'> | undefined> {
  const entry = await state.get(refs.bucket(bucket).id);
  if (entry === undefined) return undefined;
  const { enrich, repaired, ...counted } = factsSchema.catch({ enrich: 'tags', createdAtMs: 0 }).parse(entry.record);
  return { enrich, repaired, order: lastBeginOf(counted) };
}

/** Whether the bucket has a record, which is all that a mark needs. Throws the store's fault. */
export async function isConnected(state: StateStore, bucket: string): Promise<boolean> {
  return (await state.get(refs.bucket(bucket).id)) !== undefined;
}
