/** For which jobs deletions were announced, so that their deletion limit has no limit: a person need not consent to those. */
import { describe, expect, it } from 'vitest';
import type { GapReport } from '../../../src/domain/gaps/gap.ts';
import { gapId } from '../../../src/domain/gaps/gap.ts';
import type { JobRecord } from '../../../src/domain/reindex/job.ts';
import { closesDeletesOf } from '../../../src/pipeline/reindex-jobs/announced-deletes.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createGapWorld } from '../../support/worlds/gaps.ts';

const MINUTE_MS = 60_000;

type Told = Pick<GapReport, 'kind'> & Partial<GapReport>;

const bulk: Told = { kind: 'bulk-delete' };
const keyA: Told = { kind: 'bulk-delete', prefix: 'a/1', folded: true };
const keyB: Told = { kind: 'bulk-delete', prefix: 'a/2', folded: true };
const lifecycle: Told = { kind: 'lifecycle', prefix: 'a/' };
const loss: Told = { kind: 'loss' };
const idOf = (told: Told): string => gapId({ bucket: 'photos', ...told });

describe('deletions are announced to a job', () => {
  it.each<[string, boolean, string, readonly Told[], readonly Told[]]>([
    ['of a bulk delete', true, '', [bulk], []],
    ['of a lifecycle rule with the same prefix', true, 'a/', [lifecycle], []],
    ['of a bulk delete and a key', true, '', [bulk, keyA], []],
    ['of a bulk delete beside a loss of other keys', true, 'a/', [lifecycle], [{ kind: 'loss', prefix: 'b/' }]],
    ['of a bulk delete beside the loss of one key', true, '', [bulk], [{ kind: 'loss', prefix: 'a/1', folded: true }]],
    // each of them announces one delete, and the job that closes both lists what lies between them
    ['of two keys, joined', false, 'a/', [keyA, keyB], []],
    ['of a rule whose prefix is only a part of what it lists', false, '', [lifecycle], []],
    // it is not due yet, but nobody knows which deletions the rule meant
    ['of a lifecycle rule beside an open loss that is not due', false, 'a/', [lifecycle], [loss]],
    ['of a bulk delete and a loss', false, '', [bulk, loss], []],
    ['of no gap', false, '', [], [bulk]],
  ])('%s: %s', async (_, isAnnounced, prefix, own, others) => {
    const world = await createGapWorld();
    for (const told of [...own, ...others]) await world.tell(told);
    const wishes = { bucket: 'photos', prefix, mode: 'apply', requestedBy: 'gap', gapIds: own.map(idOf) } as const;
    const job = await world.jobs.start(wishes);
    expect(await closesDeletesOf(world.state, job)).toBe(isAnnounced);
  });

  it('again once the loss beside them is closed', async () => {
    const world = await createGapWorld();
    for (const told of [lifecycle, loss]) await world.tell(told);
    await updateRecord(world.state, refs.gap(idOf(loss)), (gap) => gap && { ...gap, state: 'closed' as const });
    const job = await world.jobs.start({ bucket: 'photos', prefix: 'a/', mode: 'apply', requestedBy: 'gap', gapIds: [idOf(lifecycle)] });
    expect(await closesDeletesOf(world.state, job)).toBe(true);
  });
});

describe('the job of a bulk delete that waits for a person', () => {
  /** It compares, without a limit, and is paused. */
  async function paused() {
    const world = await createGapWorld();
    await world.tell();
    await world.after(MINUTE_MS);
    const job = await world.lastJob();
    const comparing = {
      state: 'running',
      phase: 'comparing',
      startedAtMs: 1,
      comparingAtMs: 1,
      coversBeforeMs: world.clock.nowMs(),
    } as const;
    await world.setJob(job, { ...comparing, deletions: { reserved: 0, waiting: 0 } });
    await world.jobs.pause(job?.id ?? '');
    await world.after(15_000);
    return { world, id: job?.id ?? '', deletions: async (): Promise<JobRecord['deletions']> => (await world.lastJob())?.deletions };
  }

  it('deletes what was announced when it is resumed', async () => {
    const { world, id, deletions } = await paused();
    await world.jobs.resume(id, {});
    expect(await deletions()).toEqual({ reserved: 0, waiting: 0 });
  });

  it('Fix: deletes nothing without a number when it is resumed after a loss was reported', async () => {
    const { world, id, deletions } = await paused();
    await world.tell({ kind: 'loss' });
    await world.jobs.resume(id, {});
    expect(await deletions()).toEqual({ limit: 0, reserved: 0, waiting: 0 });
    await world.jobs.pause(id);
    await world.jobs.resume(id, { allow_deletes: 7 });
    expect(await deletions()).toEqual({ limit: 7, reserved: 0, waiting: 0 });
  });
});
