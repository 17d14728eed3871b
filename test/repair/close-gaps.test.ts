import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { markId } from '../../src/records/dirty.ts';
import { openNeverCompared } from '../../src/observing/gaps.ts';
import { refs, removeRecord } from '../../src/store/stored.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('a gap', () => {
  it('closes itself: quiet, a job of the whole bucket, done', async () => {
    const world = await createGapWorld();
    await world.tell();
    await world.after(MINUTE_MS - 2_000);
    expect(await world.allJobs()).toEqual([]);
    await world.after(2_000);
    const [job] = await world.allJobs();
    expect(job).toMatchObject({ bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap' });
    expect(await world.gap()).toMatchObject({ jobId: job?.id });
    await world.setJob(job, { state: 'running', startedAtMs: world.clock.nowMs(), coversBeforeMs: world.clock.nowMs() });
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ jobId: job?.id });
    await world.setJob(job, { state: 'done' });
    await world.after(15_000);
    expect(await world.gap()).toBeUndefined();
    expect(await world.closed()).toMatchObject([{ jobId: job?.id, closedAtMs: world.clock.nowMs(), reasons: [{ kind: 'bulk-delete' }] }]);
    expect(world.telemetry.logged('gap closed')).toHaveLength(1);
    await world.after(DAY_MS);
    expect(await world.allJobs()).toHaveLength(1);
  });

  it('that is reported while its job ends stays, and another job closes it', async () => {
    let isEnding = false;
    const world = await createGapWorld({
      wrap: (state) => ({
        ...state,
        remove: async (id, ...asked) => {
          if (isEnding && id === markId('photos')) {
            isEnding = false;
            await world.tell({ kind: 'loss' });
          }
          return state.remove(id, ...asked);
        },
      }),
    });
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await world.lastJob());
    isEnding = true;
    await world.round();
    expect(isEnding).toBe(false);
    expect(await world.gap()).toMatchObject({ reasons: [{ kind: 'loss' }, { kind: 'bulk-delete' }] });
    expect(await world.closed()).toEqual([]);
    await world.after(MINUTE_MS);
    await world.after(15_000);
    expect(await world.allJobs()).toHaveLength(2);
    await world.finish(await world.lastJob());
    await world.round();
    expect(await world.closed()).toHaveLength(1);
  });

  it('for which no job can be begun is tried again, and says why', async () => {
    const world = await createGapWorld();
    await world.tell();
    world.refuse(new FaultError('index.blocked', 'disk full'));
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ failures: 1, waits: { why: 'a re-index job could not be started: disk full' } });
    world.refuse(undefined);
    await world.after(MINUTE_MS);
    expect(await world.gap()).toHaveProperty('jobId');
  });

  it('is closed once by two workers that are at it together, as when one stood still', async () => {
    const world = await createGapWorld();
    await world.tell();
    await world.clock.advance(MINUTE_MS);
    await Promise.all([world.round(), world.round(), world.round()]);
    const running = await world.allJobs();
    expect(running).toHaveLength(1);
    await world.finish(running[0]);
    await Promise.all([world.round(), world.round(), world.round()]);
    expect(await world.closed()).toMatchObject([{ jobId: running[0]?.id }]);
    expect(world.telemetry.logged('gap closed')).toHaveLength(1);
  });

  it('of a bucket that refuses waits and shows why, without a job and without a failure, until it answers', async () => {
    const world = await createGapWorld();
    await world.connect('healthy');
    await world.tell();
    world.answer({ code: 'bucket.missing', reason: 'no such bucket' });
    const askedAfterMinutes: number[] = [];
    for (let minutes = 1; minutes <= 120; minutes += 1) {
      const before = world.asked.length;
      for (let quarter = 0; quarter < 4; quarter += 1) await world.after(15_000);
      if (world.asked.length > before) askedAfterMinutes.push(minutes);
      expect(world.asked.length - before).toBeLessThanOrEqual(1);
    }
    expect(askedAfterMinutes.slice(0, 60)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    expect(askedAfterMinutes.length).toBeLessThanOrEqual(60 + 13);
    expect(await world.allJobs()).toEqual([]);
    const why = expect.stringContaining('bucket.missing: no such bucket') as string;
    expect(await world.gap()).toMatchObject({ failures: 0, waits: { why } });
    expect(world.telemetry.logged('gap stays open')).toEqual([]);
    await world.tell({ bucket: 'healthy' });
    await world.after(30_000);
    world.answer(undefined);
    for (let minutes = 0; minutes < 6; minutes += 1) await world.after(MINUTE_MS);
    expect((await world.allJobs()).map(({ bucket }) => bucket).toSorted()).toEqual(['healthy', 'photos']);
    expect(await world.gap()).not.toHaveProperty('refusedSinceMs');
  });

  it.each(['before the gap is read', 'before it is removed'] as const)(
    'Fix: of a bucket that is connected again stays, also if that happens %s',
    async (moment) => {
      let isMeant = false;
      const connect = async (): Promise<void> => {
        if (!isMeant) return;
        isMeant = false;
        const first = { bucket: 'photos', seenAtMs: 1, order: 0, isHeld: false, enrich: 'none' } as const;
        await openNeverCompared(world, first, 'before');
        if (moment === 'before it is removed') return;
        await world.connect('photos');
        await openNeverCompared(world, first, 'after');
      };
      const world = await createGapWorld({
        wrap: (state) => ({
          ...state,
          get: async (id, signal) => {
            if (moment === 'before the gap is read' && id === markId('photos')) await connect();
            return state.get(id, signal);
          },
          remove: async (id, version, signal) => {
            if (id === markId('photos')) await connect();
            return state.remove(id, version, signal);
          },
        }),
      });
      await world.tell({ kind: 'loss' });
      await removeRecord(world.state, refs.bucket('photos').id);
      isMeant = true;
      await world.round();
      expect(isMeant).toBe(false);
      expect(await world.gap()).toMatchObject({ reasons: [{ kind: 'new' }] });
    },
  );
});

describe('the gaps of one bucket', () => {
  it('are closed by one job', async () => {
    const world = await createGapWorld();
    await world.tell({ kind: 'handed-over', key: 'a' });
    await world.tell({ kind: 'handed-over', key: 'b' });
    await world.tell({ kind: 'loss' });
    await world.after(MINUTE_MS);
    const jobs = await world.allJobs();
    expect(jobs).toMatchObject([{ prefix: '' }]);
    await world.finish(jobs[0]);
    await world.round();
    expect(new Set((await world.closed()).map(({ prefix }) => prefix))).toEqual(new Set(['a', 'b', undefined]));
  });

  it('are closed though those of another bucket cannot be, or its record cannot be read', async () => {
    const world = await createGapWorld({
      wrap: (state) => ({
        ...state,
        get: (id, signal) =>
          id === markId('broken') ? Promise.reject(new FaultError('index.state-missing', 'odd')) : state.get(id, signal),
      }),
    });
    await world.connect('broken');
    await world.state.put({ id: 'bucket:newer', kind: 'bucket', record: { source: 'of a newer version' } }, null);
    for (const bucket of ['broken', 'newer']) await world.tell({ bucket });
    await world.tell();
    await world.after(MINUTE_MS);
    expect(await world.gap()).toHaveProperty('jobId');
    expect(await world.gap({ bucket: 'newer' })).toBeDefined();
    expect(world.telemetry.recorded('requestFailed')).toContainEqual(['close the gaps of a bucket', 'index.state-missing', 'odd']);
  });
});
