import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import type { JobRecord } from '../../../src/domain/reindex/job.ts';
import { createDeletionLimit } from '../../../src/pipeline/reindex-jobs/compare-job.ts';
import { createClaimJob, type HeldJob } from '../../../src/pipeline/reindex-jobs/job-lease.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

const ID = 'job-000000001-000000000001';

/** A held job with this limit, whose calls of the store can fail and are counted. */
async function heldWith(limit: number) {
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
    dueAtMs: 0,
    deletions: { limit, reserved: 0, waiting: 0 },
  };
  await updateRecord(state, refs.job(ID), () => job);
  const calls = { puts: 0, fault: undefined as FaultError | undefined, loses: false };
  const put: StateStore['put'] = async (...args) => {
    calls.puts += 1;
    if (calls.fault !== undefined && !calls.loses) throw calls.fault;
    const stored = await state.put(...args);
    if (calls.fault !== undefined) throw calls.fault;
    return stored;
  };
  const claim = await createClaimJob({ state: { ...state, put }, clock: createFakeClock(), worker: 'w' })(ID);
  if (claim.kind !== 'taken') throw new Error(claim.kind);
  const { held }: { readonly held: HeldJob } = claim;
  const change = (more: Partial<JobRecord>) => updateRecord(state, refs.job(ID), (current) => current && { ...current, ...more });
  const reserved = async () => (await readRecord(state, refs.job(ID)))?.deletions?.reserved;
  return { held, calls, change, reserved, limit: createDeletionLimit(held) };
}

describe('the deletion limit of a held job', () => {
  it('swaps the job’s record far more seldom than it is asked, and leaves it with what was used', async () => {
    const { limit, calls, reserved } = await heldWith(10_000);
    const turn = limit.ofTurn();
    const before = calls.puts;
    for (let page = 0; page < 300; page += 1) expect(await turn.reserve(1)).toBe(1);
    expect(calls.puts - before).toBeLessThan(5);
    expect(await reserved()).toBeGreaterThanOrEqual(300);
    await limit.giveBack();
    await limit.giveBack();
    expect(await reserved()).toBe(300);
  });

  it('holds deletions back for its limit alone, not for a fault', async () => {
    const { limit, calls } = await heldWith(5);
    const turn = limit.ofTurn();
    expect([await turn.reserve(3), turn.holdsBack()]).toEqual([3, false]);
    calls.fault = new FaultError('index.unreachable', 'gone');
    expect([await turn.reserve(4), turn.holdsBack()]).toEqual([0, false]);
    expect(turn.fault()).toMatchObject({ code: 'index.unreachable' });
    calls.fault = undefined;
    expect([await turn.reserve(4), turn.holdsBack()]).toEqual([2, true]);
    expect([await turn.reserve(2), turn.holdsBack()]).toEqual([0, true]);
  });

  it('grants nothing and holds nothing back once the job is paused', async () => {
    const { limit, change } = await heldWith(5);
    const turn = limit.ofTurn();
    await change({ state: 'paused', pausedBecause: 'requested' });
    expect([await turn.reserve(7), turn.holdsBack()]).toEqual([0, false]);
  });

  it('grants nothing to a process that has lost its job', async () => {
    const { limit, change } = await heldWith(1_000);
    const turn = limit.ofTurn();
    await change({ lease: { worker: 'another' } });
    expect([await turn.reserve(2), turn.holdsBack()]).toEqual([0, false]);
  });

  it('counts a reservation whose answer was lost, and gives nothing back that may be used', async () => {
    const { limit, calls, reserved } = await heldWith(1_000);
    const turn = limit.ofTurn();
    Object.assign(calls, { fault: new FaultError('index.unreachable', 'no answer'), loses: true });
    expect(await turn.reserve(100)).toBe(0);
    calls.fault = undefined;
    expect(await turn.reserve(100)).toBe(100);
    await limit.giveBack();
    expect(await reserved()).toBeGreaterThanOrEqual(200);
  });

  it('of many turns grants no more than the limit, and nearly all of it before one is held', async () => {
    const asks = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 1, max: 120 })), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 3_000 }), asks, async (most, all) => {
        const { limit, held, reserved } = await heldWith(most);
        const turns = Array.from({ length: 5 }, () => limit.ofTurn());
        const granted = await Promise.all(all.map(async ([turn, count]) => turns[turn]?.reserve(count) ?? 0));
        const used = granted.reduce((sum, count) => sum + count, 0);
        expect(used).toBeLessThanOrEqual(most);
        await limit.giveBack();
        expect(await reserved()).toBe(used);
        const wanted = all.reduce((sum, [, count]) => sum + count, 0);
        expect(used).toBe(Math.min(wanted, most));
        await held.release(0);
      }),
    );
  });
});
