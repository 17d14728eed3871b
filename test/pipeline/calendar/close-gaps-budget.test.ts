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
  /** A gap of the whole bucket is reported and closed by a job that lists so often. */
  async function closed(world: Awaited<ReturnType<typeof createGapWorld>>, listRequests: number) {
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await world.lastJob(), { counts: { ...noCounts, listRequests } });
    await world.round();
    expect(await world.gap()).toMatchObject({ state: 'closed' });
    await world.clock.advance(MINUTE_MS);
  }

  it('of a bucket that is spent keeps its gaps open, which say until when', async () => {
    const world = await createGapWorld({ requestsPerDay: 100, live: { '': 79 } });
    await closed(world, 95);
    await closed(world, 95);
    await world.tell();
    await world.after(MINUTE_MS);
    const held = await world.gap();
    expect(held).toMatchObject({
      state: 'open',
      waits: { reason: 'the jobs of its bucket have used the 100 LIST requests of the day (TALLY_GAPS_LIST_REQUESTS_PER_DAY)' },
    });
    const untilMs = held?.waits?.untilMs ?? 0;
    expect(untilMs - world.clock.nowMs()).toBeGreaterThan(21 * HOUR_MS);
    await world.after(untilMs - world.clock.nowMs() - MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(2);
    await world.after(5 * MINUTE_MS + MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(3);
  });

  /** Small gaps under logs/ come six times a day, and each costs 304 of 1,000 LIST requests. Returns after how many hours `closes` does. */
  async function besideSmallOnes(bucketThousands: number, closes: GapRecord['kind'] = 'loss') {
    const world = await createGapWorld({ requestsPerDay: 1_000, live: { '': bucketThousands, 'logs/': 303 } });
    for (let hour = 0; hour < 24 * 10; hour += 1) {
      if (hour === 24) await world.tell({ kind: closes });
      if (hour % 4 === 0) await world.tell({ kind: 'lifecycle', prefix: 'logs/' });
      for (let minutes = 0; minutes < 60; minutes += 10) {
        await world.after(10 * MINUTE_MS - (minutes === 0 ? 2_000 : 0));
        const job = await world.lastJob();
        const listRequests = job?.prefix === '' ? bucketThousands + 1 : 304;
        if (job?.state === 'queued') await world.finish(job, { counts: { ...noCounts, listRequests } });
        await world.round();
      }
      if (hour >= 24 && (await world.gap({ bucket: 'photos', kind: closes }))?.state === 'closed') return { world, hours: hour - 24 };
    }
    return { world, hours: Infinity };
  }

  it('is not spent on small gaps for ever: a gap of the whole bucket has its turn', async () => {
    const { world, hours } = await besideSmallOnes(899);
    expect(hours).toBeLessThanOrEqual(24);
    const prefixes = (await world.allJobs()).map(({ prefix }) => prefix);
    expect(prefixes.filter((prefix) => prefix === 'logs/').length).toBeGreaterThan(5);
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
      // one that the bucket does not name never runs
      const bucket = await readRecord(world.state, refs.bucket('photos'));
      const running = (await world.allJobs()).filter(({ id, state }) => state === 'queued' && id === bucket?.applyJobId);
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
        // each job keeps the budget of 1,000 a day busy for 7 requests
        const done = (await world.allJobs()).filter(({ state }) => state === 'done').toSorted((a, b) => a.createdAtMs - b.createdAtMs);
        const paidUntilMs = done.reduce((paidMs, { createdAtMs }) => Math.max(paidMs, createdAtMs) + 0.007 * DAY_MS, 0);
        expect({ at, paidUntilMs: Math.round((budget?.paidUntilMs.usual ?? 0) / 1_000) }).toEqual({
          at,
          paidUntilMs: Math.round(paidUntilMs / 1_000),
        });
      }
    }
  });
});
