import { describe, expect, it } from 'vitest';
import { gapBudgetSchema } from '../../../src/domain/gaps/budget.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { gapSchema, type GapRecord } from '../../../src/domain/gaps/gap.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import { listAllRecords, readRecord, refs } from '../../../src/pipeline/records/stored.ts';
import { createGapWorld } from '../../support/worlds/gaps.ts';
import { reindexRequest } from '../../support/requests.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('the budget', () => {
  it('of a bucket that is spent keeps its gaps open, which say until when', async () => {
    const world = await createGapWorld({ requestsPerDay: 100, live: { '': 79 } });
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await world.lastJob(), { counts: { ...noCounts, listRequests: 90 } });
    await world.round();
    expect(await world.gap()).toMatchObject({ state: 'closed' });
    await world.clock.advance(MINUTE_MS);
    await world.tell();
    await world.after(MINUTE_MS);
    const held = await world.gap();
    expect(held).toMatchObject({
      state: 'open',
      waits: { reason: 'its bucket has spent 90 of 100 LIST requests of the day (TALLY_GAPS_LIST_REQUESTS_PER_DAY)' },
    });
    const untilMs = held?.waits?.untilMs ?? 0;
    expect(untilMs - world.clock.nowMs()).toBeGreaterThan(23 * HOUR_MS);
    await world.after(untilMs - world.clock.nowMs() - MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(1);
    await world.after(5 * MINUTE_MS + MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(2);
  });

  it('counts what jobs really used: one that was cheaper than expected leaves the more', async () => {
    const world = await createGapWorld({ requestsPerDay: 100, live: { '': 79 } });
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await world.lastJob(), { counts: { ...noCounts, listRequests: 20 } });
    await world.round();
    await world.clock.advance(MINUTE_MS);
    await world.tell();
    await world.after(MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(2);
  });

  it('that does not reach for the whole bucket is spent on gaps with a prefix', async () => {
    const world = await createGapWorld({ requestsPerDay: 100, live: { '': 79, 'a/': 5 } });
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await world.lastJob(), { counts: { ...noCounts, listRequests: 80 } });
    await world.round();
    await world.clock.advance(MINUTE_MS);
    await world.tell();
    await world.tell({ kind: 'lifecycle', prefix: 'a/' });
    await world.after(MINUTE_MS);
    expect((await world.allJobs()).map(({ prefix }) => prefix)).toEqual(['', 'a/']);
    expect((await world.gap())?.state).toBe('open');
  });

  it('of 0 leaves gaps to people', async () => {
    const world = await createGapWorld({ requestsPerDay: 0 });
    await world.tell();
    await world.after(DAY_MS);
    expect(await world.allJobs()).toEqual([]);
    expect((await world.gap())?.waits?.reason).toContain('TALLY_GAPS_LIST_REQUESTS_PER_DAY is 0');
    const { id } = await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'http');
    await world.finish(await world.lastJob());
    await world.after(DAY_MS);
    expect(await world.gap()).toMatchObject({ state: 'closed', jobId: id });
  });
});

describe('a worker that dies between any two of its writes', () => {
  async function runWithDeathAt(write: number) {
    let writes = 0;
    const world = await createGapWorld({
      wrap: (state) => ({
        ...state,
        put: (entry, expected, signal) => {
          writes += 1;
          // what was sent may be stored: dead before it, or after it
          if (writes === write) return Promise.reject(new FaultError('index.unreachable', 'killed before the write'));
          if (writes === -write) return state.put(entry, expected, signal).then(() => Promise.reject(new Error('killed after the write')));
          return state.put(entry, expected, signal);
        },
      }),
    });
    await world.tell();
    await world.tell({ kind: 'loss' });
    for (let minutes = 0; minutes < 10; minutes += 1) {
      await world.after(MINUTE_MS).catch(() => undefined);
      // one that the slot does not name never runs
      const slot = await readRecord(world.state, refs.jobSlot('photos'));
      const running = (await world.allJobs()).filter(({ id, state }) => state === 'queued' && id === slot?.jobId);
      // a job runs for a minute or two
      if (minutes % 2 === 1) for (const job of running) await world.finish(job, { counts: { ...noCounts, listRequests: 7 } });
    }
    return { world, writes };
  }

  it('loses no gap, and counts what each job cost once', async () => {
    const { writes } = await runWithDeathAt(Infinity);
    expect(writes).toBeGreaterThan(5);
    for (let write = 1; write <= writes; write += 1) {
      for (const at of [write, -write]) {
        const { world } = await runWithDeathAt(at);
        const gaps: readonly GapRecord[] = await listAllRecords(world.state, 'gap', gapSchema);
        expect({ at, states: gaps.map(({ state }) => state) }).toEqual({ at, states: ['closed', 'closed'] });
        const [budget] = await listAllRecords(world.state, 'gap-budget', gapBudgetSchema);
        expect({ at, running: budget?.running }).toEqual({ at, running: [] });
        expect(budget?.spent.reduce((sum, { requests }) => sum + requests, 0)).toBe(
          7 * (await world.allJobs()).filter(({ state }) => state === 'done').length,
        );
      }
    }
  });
});
