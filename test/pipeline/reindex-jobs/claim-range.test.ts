import { describe, expect, it } from 'vitest';
import { createTakeRange as createTake } from '../../../src/pipeline/reindex-jobs/claim-range.ts';
import { createLeaseWatch } from '../../../src/pipeline/reindex-jobs/lease-watch.ts';
import { ensureRange, freshRange } from '../../../src/pipeline/reindex-jobs/range-records.ts';
import { readRecord, refs } from '../../../src/pipeline/records/stored.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { afterTurn } from '../../../src/domain/reindex/range-transitions.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import type { JobRecord } from '../../../src/domain/reindex/job.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import { racingState } from '../../support/fakes/racing-state.ts';

const job: JobRecord = {
  id: 'job-000000000-000000000000',
  bucket: 'photos',
  prefix: '',
  mode: 'apply',
  requestedBy: 'http',
  state: 'running',
  createdAtMs: 0,
};
const { id } = refs.range(job.id, 0);

function createTakeRange(parts: { readonly state: StateStore; readonly clock: Clock; readonly worker: string }) {
  return createTake({ ...parts, watch: createLeaseWatch(parts.clock) });
}

const turnEnd = { cursor: 'm', done: false, counts: noCounts, examples: {} };

async function rangeIn(state: StateStore) {
  await ensureRange(state, freshRange(job.id, 0, { from: '', nowMs: 0 }));
  return state;
}

describe('a range', () => {
  it('is left to whoever was faster', async () => {
    const state = await rangeIn(createMemoryStore().state);
    const clock = createFakeClock();
    const other = createTakeRange({ state, clock, worker: 'b' });
    const interfere = async (): Promise<void> => void (await other(job.id, 0));
    const take = createTakeRange({
      state: racingState(state, { times: 1, matches: (each) => each === id, interfere }),
      clock,
      worker: 'a',
    });
    expect(await take(job.id, 0)).toEqual({ kind: 'leased' });
    expect(await take(job.id, 0)).toEqual({ kind: 'early' });
    expect((await readRecord(state, refs.range(job.id, 0)))?.lease?.worker).toMatch(/^b\//);
  });

  it('of a worker that lives is never taken, and that of a dead one when it has not changed for a minute', async () => {
    const state = await rangeIn(createMemoryStore().state);
    const clock = createFakeClock();
    const taken = await createTakeRange({ state, clock, worker: 'a' })(job.id, 0);
    // its clock is a day fast, so that the range is always due for it
    const take = createTakeRange({ state, clock: { ...clock, nowMs: () => clock.nowMs() + 86_400_000 }, worker: 'b' });
    for (let seconds = 0; seconds < 600; seconds += 10) {
      expect(await take(job.id, 0)).toEqual({ kind: 'leased' });
      await clock.advance(10_000);
    }
    if (taken.kind !== 'taken') throw new Error(taken.kind);
    // as if its process had died
    taken.range.release();
    expect(await take(job.id, 0)).toEqual({ kind: 'leased' });
    await clock.advance(59_000);
    expect(await take(job.id, 0)).toEqual({ kind: 'leased' });
    await clock.advance(1_000);
    expect(await take(job.id, 0)).toMatchObject({ kind: 'taken', range: { record: { fruitless: 1 } } });
  });

  it('is lost before another worker may take it, however long the store takes to answer', async () => {
    const state = await rangeIn(createMemoryStore().state);
    const clock = createFakeClock();
    let refusesAfterMs: number | undefined;
    const slow: StateStore = {
      ...state,
      async put(...args) {
        const stored = refusesAfterMs === undefined ? await state.put(...args) : undefined;
        await clock.sleep(refusesAfterMs ?? 14_000);
        if (stored === undefined) throw new FaultError('index.unreachable', 'no answer');
        return stored;
      },
    };
    const taking = createTakeRange({ state: slow, clock, worker: 'a' })(job.id, 0);
    await clock.advance(0);
    const other = createTakeRange({ state, clock: { ...clock, nowMs: () => clock.nowMs() + 60_000 }, worker: 'b' });
    expect(await other(job.id, 0)).toEqual({ kind: 'leased' });
    await clock.advance(14_000);
    const taken = await taking;
    if (taken.kind !== 'taken') throw new Error(taken.kind);
    refusesAfterMs = 14_900;
    await clock.advance(45_999);
    expect(taken.range.lost.aborted).toBe(true);
    await clock.advance(1);
    expect(await other(job.id, 0)).toMatchObject({ kind: 'taken' });
    taken.range.release();
  });

  it('Fix: that was given back is not written again by a renewal', async () => {
    const state = await rangeIn(createMemoryStore().state);
    const clock = createFakeClock();
    const taken = await createTakeRange({ state, clock, worker: 'a' })(job.id, 0);
    if (taken.kind !== 'taken') throw new Error(taken.kind);
    await taken.range.change((range) => afterTurn(range, turnEnd, 0));
    const stored = await state.get(id);
    await clock.advance(60_000);
    expect(await state.get(id)).toEqual(stored);
    taken.range.release();
  });

  it('is still held when a write of its own was stored and its answer lost', async () => {
    const state = await rangeIn(createMemoryStore().state);
    const clock = createFakeClock();
    let isLosing = false;
    const losing: StateStore = {
      ...state,
      put: async (entry, expected) => {
        const stored = await state.put(entry, expected);
        if (isLosing) throw new FaultError('index.unreachable', 'no answer');
        return stored;
      },
    };
    const taken = await createTakeRange({ state: losing, clock, worker: 'a' })(job.id, 0);
    if (taken.kind !== 'taken') throw new Error(taken.kind);
    isLosing = true;
    await clock.advance(15_000);
    isLosing = false;
    expect(await taken.range.change((range) => afterTurn(range, turnEnd, 0))).toBe(true);
    expect(taken.range.lost.aborted).toBe(false);
    taken.range.release();
    expect(await readRecord(state, refs.range(job.id, 0))).toMatchObject({ cursor: 'm' });
  });

  it('keeps what a newer version of Tally stored in it, through every swap', async () => {
    const { state } = createMemoryStore();
    await state.put({ id, kind: 'range', record: { ...freshRange(job.id, 0, { from: '', nowMs: 0 }), hue: 'new' } }, null);
    const taken = await createTakeRange({ state, clock: createFakeClock(), worker: 'a' })(job.id, 0);
    expect((await state.get(id))?.record).toMatchObject({ hue: 'new', lease: {} });
    if (taken.kind !== 'taken') throw new Error(taken.kind);
    await taken.range.change((range) => afterTurn(range, turnEnd, 0));
    taken.range.release();
    expect((await state.get(id))?.record).toMatchObject({ hue: 'new', cursor: 'm' });
    expect(await readRecord(state, refs.range(job.id, 0))).not.toHaveProperty('hue');
  });
});
