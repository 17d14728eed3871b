import { describe, expect, it } from 'vitest';
import { createOpenRanges } from '../../../src/pipeline/reindex-jobs/job-ends.ts';
import { ensureRange, freshRange, listRanges, RANGES_MAX } from '../../../src/pipeline/reindex-jobs/range-records.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

const JOB = 'job-000000000-000000000001';

/** A state with ranges of one job, that counts the records which its lists answer. */
async function stateWith(ranges: number): Promise<{ readonly state: StateStore; readonly listed: () => number }> {
  const { state } = createMemoryStore();
  let listed = 0;
  const list: StateStore['list'] = async (...asked) => {
    const entries = await state.list(...asked);
    listed += entries.length;
    return entries;
  };
  for (let number = 0; number < ranges; number += 1) await ensureRange(state, freshRange(JOB, number, { from: String(number), nowMs: 0 }));
  return { state: { ...state, list }, listed: () => listed };
}

function done(state: StateStore, number: number, job = JOB): Promise<unknown> {
  return updateRecord(state, refs.range(job, number), (range) => range && { ...range, done: true });
}

describe('the open ranges of a job', () => {
  it('are there until the last one is done, in whatever order they get done', async () => {
    const { state } = await stateWith(5);
    const { isAny } = createOpenRanges(state);
    for (const number of [3, 0, 4, 1]) {
      await done(state, number);
      expect(await isAny(JOB)).toBe(true);
    }
    await done(state, 2);
    expect(await isAny(JOB)).toBe(false);
  });

  it('are not those of another job', async () => {
    const { state } = await stateWith(1);
    const other = 'job-000000000-000000000002';
    await ensureRange(state, freshRange(other, 0, { from: '', nowMs: 0 }));
    await done(state, 0);
    const { isAny } = createOpenRanges(state);
    expect(await isAny(JOB)).toBe(false);
    expect(await isAny(other)).toBe(true);
  });

  it('are found by reading each record about once, however many get done', async () => {
    const count = 400;
    const { state, listed } = await stateWith(count);
    const { isAny } = createOpenRanges(state);
    for (let number = 0; number < count; number += 1) {
      await done(state, number);
      await isAny(JOB);
    }
    expect(await isAny(JOB)).toBe(false);
    // a list of all for each that is done would be 400 times as much
    expect(listed()).toBeLessThanOrEqual(2 * count);
  });

  it('are found beyond the first page of a list that shows them as open although they are done', async () => {
    const { state } = await stateWith(120);
    const lagging: StateStore = {
      ...state,
      list: async (...asked) =>
        (await state.list(...asked)).map((entry) => ({ ...entry, record: { ...(entry.record as object), done: false } })),
    };
    const { isAny } = createOpenRanges(lagging);
    for (let number = 0; number < 119; number += 1) await done(state, number);
    expect(await isAny(JOB)).toBe(true);
    await done(state, 119);
    expect(await isAny(JOB)).toBe(false);
  });
});

describe('the list of a job’s ranges', () => {
  it('has all of them, although a request lists no more than 1,000 records', async () => {
    const { state } = await stateWith(RANGES_MAX);
    expect((await listRanges(state, JOB)).map(({ number }) => number)).toEqual(Array.from({ length: RANGES_MAX }, (_, number) => number));
  });
});
