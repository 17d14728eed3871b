import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { JobRecord } from '../../src/records/job.ts';
import { createDeletionLimit } from '../../src/repair/compare-job.ts';
import { createClaimJob, type HeldJob } from '../../src/repair/job-lease.ts';
import type { StateStore } from '../../src/store/store.ts';
import { readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

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
    createdAtMs: 0,
    startedAtMs: 0,
    comparingAtMs: 0,
    dueAtMs: 0,
    deletions: { limit, reserved: 0 },
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
  it('uses what was not used for others, and leaves the job’s record with what was', async () => {
    const { limit, calls, reserved } = await heldWith(10_000);
    expect(await limit.reserve(300)).toBe(300);
    const before = calls.puts;
    limit.giveBack(20);
    expect(await limit.reserve(10)).toBe(10);
    expect(calls.puts).toBe(before);
    await limit.giveBackRest();
    await limit.giveBackRest();
    expect(await reserved()).toBe(290);
  });

  it('is used up by its limit alone, not by a fault', async () => {
    const { limit, calls } = await heldWith(5);
    expect([await limit.reserve(3), limit.isUsedUp()]).toEqual([3, false]);
    calls.fault = new FaultError('index.unreachable', 'gone');
    await expect(limit.reserve(4)).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(limit.isUsedUp()).toBe(false);
    calls.fault = undefined;
    expect([await limit.reserve(4), limit.isUsedUp()]).toEqual([2, true]);
    limit.giveBack(1);
    expect(limit.isUsedUp()).toBe(false);
    expect([await limit.reserve(2), limit.isUsedUp()]).toEqual([1, true]);
  });

  it.each<[string, Partial<JobRecord>]>([
    ['once the job is paused', { state: 'paused' }],
    ['to a process that has lost its job', { lease: { worker: 'another' } }],
  ])('grants nothing %s', async (_, more) => {
    const { limit, change } = await heldWith(5);
    await change(more);
    await expect(limit.reserve(7)).rejects.toThrow('does not compare now');
    expect(limit.isUsedUp()).toBe(false);
  });

  it('counts a reservation whose answer was lost, and gives nothing back that may be used', async () => {
    const { limit, calls, reserved } = await heldWith(1_000);
    Object.assign(calls, { fault: new FaultError('index.unreachable', 'no answer'), loses: true });
    await expect(limit.reserve(100)).rejects.toThrow('no answer');
    calls.fault = undefined;
    expect(await limit.reserve(100)).toBe(100);
    await limit.giveBackRest();
    expect(await reserved()).toBeGreaterThanOrEqual(200);
  });

  it('grants no more than the limit, and all of it before one is held', async () => {
    const asks = fc.array(fc.integer({ min: 1, max: 120 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 3_000 }), asks, async (most, all) => {
        const { limit, held, reserved } = await heldWith(most);
        const granted = await Promise.all(all.map((count) => limit.reserve(count)));
        const used = granted.reduce((sum, count) => sum + count, 0);
        await limit.giveBackRest();
        expect(await reserved()).toBe(used);
        expect(used).toBe(
          Math.min(
            all.reduce((sum, count) => sum + count, 0),
            most,
          ),
        );
        await held.release(0);
      }),
    );
  });
});
