import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import { gapSchema } from '../../../src/domain/gaps/gap.ts';
import { jobSchema } from '../../../src/domain/reindex/job.ts';
import { createConnectBucket } from '../../../src/pipeline/buckets/connect.ts';
import { createCloseGaps } from '../../../src/pipeline/calendar/close-gaps.ts';
import { createAddBucket } from '../../../src/pipeline/control/add-bucket.ts';
import { createReindexJobs } from '../../../src/pipeline/control/reindex-jobs.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { listAllRecords, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createProvingLook } from '../../support/fakes/proving-look.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { reindexRequest } from '../../support/requests.ts';
import { beginOrderNow } from '../../support/worlds/begin-order.ts';

const DAY_MS = 86_400_000;

function setUp() {
  const { objects, state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const storage = createFakeStorage(clock);
  for (const bucket of ['photos', 'docs']) storage.createBucket(bucket);
  const gaps = createGapReports({ state, clock, telemetry });
  const connectBucket = createConnectBucket({ state, objects, storage, gaps, clock, telemetry });
  const jobs = createReindexJobs({ state, clock, telemetry });
  const closeGaps = createCloseGaps({
    state,
    scan: { countLive: async () => 0 },
    startJob: (request, signal) => jobs.start(request, signal),
    askToRepair: async () => undefined,
    clock,
    telemetry,
    requestsPerDay: 1_000,
  });
  const allJobs = () => listAllRecords(state, 'job', jobSchema);
  return {
    state,
    clock,
    telemetry,
    connectBucket,
    jobs,
    add: createAddBucket({
      state,
      connectBucket,
      look: createProvingLook({ state, clock }),
      jobs,
      telemetry,
    }),
    allJobs,
    gaps: () => listAllRecords(state, 'gap', gapSchema),
    /** The calendar closes what is due after this time. */
    async after(waitMs: number): Promise<void> {
      await clock.advance(waitMs);
      await closeGaps(new AbortController().signal);
    },
    /** The latest job is done, and covers what was before this time. */
    async finish(coversBeforeMs: number): Promise<void> {
      const job = (await allJobs()).at(-1);
      const beginOrder = await beginOrderNow(state, job?.bucket ?? '', coversBeforeMs);
      const done = { state: 'done', coversBeforeMs, beginOrder, finishedAtMs: clock.nowMs() } as const;
      await updateRecord(state, refs.job(job?.id ?? ''), (each) => each && { ...each, ...done });
    },
  };
}

describe('adding a bucket', () => {
  it('starts its first re-index, which closes its gap', async () => {
    const world = setUp();
    // S3's clock has whole seconds, so the job seems to begin before the bucket was connected
    const startedAtMs = world.clock.nowMs() - 1_000;
    const { record, jobId } = await world.add({ bucket: 'photos' }, 'someone');
    expect(record.bucket).toBe('photos');
    expect(await world.allJobs()).toMatchObject([{ id: jobId, bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'someone' }]);
    await world.after(15_000);
    expect(await world.gaps()).toMatchObject([{ bucket: 'photos', reason: 'never compared', state: 'closing', jobId }]);
    await world.finish(startedAtMs);
    await world.after(15_000);
    expect(await world.gaps()).toMatchObject([{ state: 'closed', jobId }]);
    expect(await world.allJobs()).toHaveLength(1);
  });

  it('that is connected already starts none', async () => {
    const world = setUp();
    await world.connectBucket.connect({ bucket: 'photos' }, 'someone');
    expect(await world.add({ bucket: 'photos', enrich: 'head' }, 'someone')).not.toHaveProperty('jobId');
    expect(await world.allJobs()).toEqual([]);
  });

  it('at its first event starts its first re-index as well, once it has been quiet for a minute', async () => {
    const world = setUp();
    await world.connectBucket.autoConnect('photos', 'notification', 10);
    await world.after(15_000);
    expect(await world.allJobs()).toEqual([]);
    await world.after(60_000);
    expect(await world.allJobs()).toMatchObject([{ bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap' }]);
  });

  it('that asks for more enrichment than before wants it filled in, and one that asks for less or the same does not', async () => {
    const world = setUp();
    const wanted: boolean[] = [];
    for (const enrich of ['head', 'head', 'tags', 'none', 'tags', 'head'] as const) {
      wanted.push((await world.add({ bucket: 'photos', enrich }, 'someone')).isFillWanted);
      // reports of one gap are stored at most once a second
      await world.clock.advance(1_000);
    }
    expect(wanted).toEqual([false, false, true, false, true, false]);
    expect((await world.add({ bucket: 'photos' }, 'someone')).isFillWanted).toBe(false);
  });

  it('while the job cannot be stored, leaves that to the calendar', async () => {
    const world = setUp();
    const request = () => Promise.reject(new FaultError('index.blocked', 'disk full'));
    const add = createAddBucket({ ...world, look: async () => [], jobs: { request } });
    expect(await add({ bucket: 'docs' }, 'someone')).not.toHaveProperty('jobId');
    expect(world.telemetry.recorded('requestFailed')).toEqual([['start the first re-index', 'index.blocked', 'disk full']]);
    await world.after(60_000);
    const jobs = (await world.allJobs()).map(({ bucket, requestedBy }) => `${bucket} ${requestedBy}`);
    expect(jobs).toEqual(['docs gap']);
  });

  it('without a first re-index holds the gap until a re-index is requested', async () => {
    const world = setUp();
    expect(await world.add({ bucket: 'photos', reindex: false }, 'someone')).not.toHaveProperty('jobId');
    for (let days = 0; days < 3; days += 1) await world.after(DAY_MS);
    expect(await world.allJobs()).toEqual([]);
    expect(await world.gaps()).toMatchObject([{ state: 'open', held: true }]);
    const { id } = await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    await world.after(15_000);
    const [closing] = await world.gaps();
    expect(closing).toMatchObject({ state: 'closing', jobId: id });
    expect(closing).not.toHaveProperty('held');
    await world.jobs.cancel(id);
    // from now on the calendar tries again, as with every gap
    for (let minutes = 0; minutes < 3; minutes += 1) await world.after(60_000);
    expect((await world.allJobs()).map(({ requestedBy }) => requestedBy)).toEqual(['someone', 'gap']);
  });
});
