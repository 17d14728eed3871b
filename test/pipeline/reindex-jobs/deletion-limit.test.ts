import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import type { JobRecord } from '../../../src/domain/reindex/job.ts';
import { createDeletionLimit } from '../../../src/pipeline/reindex-jobs/run-range.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

const ID = 'job-000000001-000000000001';

async function stateWith(limit: number): Promise<StateStore> {
  const { state } = createMemoryStore();
  const job: JobRecord = {
    id: ID,
    bucket: 'b',
    prefix: '',
    mode: 'apply',
    requestedBy: 'test',
    state: 'running',
    phase: 'comparing',
    createdAtMs: 0,
    startedAtMs: 0,
    comparingAtMs: 0,
    deletions: { limit, reserved: 0, waiting: 0 },
  };
  await updateRecord(state, refs.job(ID), () => job);
  return state;
}

async function reservedIn(state: StateStore): Promise<number | undefined> {
  return (await readRecord(state, refs.job(ID)))?.deletions?.reserved;
}

describe('the deletion limit of a turn', () => {
  it('swaps the job’s record far more seldom than it is asked, and leaves it with what was used', async () => {
    const state = await stateWith(10_000);
    let swaps = 0;
    const deletions = createDeletionLimit(
      {
        ...state,
        put: async (...args) => {
          swaps += 1;
          return state.put(...args);
        },
      },
      ID,
    );
    for (let page = 0; page < 300; page += 1) expect(await deletions.reserve(1)).toBe(1);
    expect(swaps).toBeLessThan(5);
    expect(await reservedIn(state)).toBeGreaterThanOrEqual(300);
    await deletions.giveBack();
    await deletions.giveBack();
    expect(await reservedIn(state)).toBe(300);
  });

  it('holds deletions back for its limit alone: neither for a pause, nor for a fault', async () => {
    const change = (state: StateStore, more: Partial<JobRecord>) => updateRecord(state, refs.job(ID), (job) => job && { ...job, ...more });
    const state = await stateWith(5);
    let isBroken = false;
    const fault = new FaultError('index.unreachable', 'gone');
    const deletions = createDeletionLimit({ ...state, get: (...args) => (isBroken ? Promise.reject(fault) : state.get(...args)) }, ID);
    expect([await deletions.reserve(7), deletions.holdsBack()]).toEqual([5, true]);
    expect([await deletions.reserve(2), deletions.holdsBack()]).toEqual([0, true]);
    isBroken = true;
    expect([await deletions.reserve(2), deletions.holdsBack()]).toEqual([0, false]);
    await deletions.giveBack();
    isBroken = false;
    await change(state, { state: 'paused', pausedBecause: 'requested' });
    expect([await deletions.reserve(2), deletions.holdsBack()]).toEqual([0, false]);
    await change(state, { state: 'running' });
    expect([await deletions.reserve(2), deletions.holdsBack()]).toEqual([0, true]);
  });

  it('of many ranges grants no more than the limit, and nearly all of it before one is held', async () => {
    const asks = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 1, max: 120 })), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 3_000 }), asks, async (limit, all) => {
        const state = await stateWith(limit);
        const limits = Array.from({ length: 5 }, () => createDeletionLimit(state, ID));
        let used = 0;
        for (const [range, count] of all) used += (await limits[range]?.reserve(count)) ?? 0;
        expect(used).toBeLessThanOrEqual(limit);
        for (const deletions of limits) await deletions.giveBack();
        expect(await reservedIn(state)).toBe(used);
        // what one range finds nothing left of, the others may still have a little of
        const wanted = all.reduce((sum, [, count]) => sum + count, 0);
        expect(used).toBeGreaterThanOrEqual(Math.min(wanted, limit - limits.length * Math.floor(limit / 64)));
      }),
    );
  });
});
