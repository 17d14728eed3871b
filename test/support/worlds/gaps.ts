/** A state store, gaps, jobs and the round that closes them, in manual time. */
import type { Fault } from '../../../src/base/fault.ts';
import { markId, type GapReport } from '../../../src/records/dirty.ts';
import { jobSchema, type JobRecord } from '../../../src/records/job.ts';
import { createCloseGaps, type AskToRepair } from '../../../src/repair/close-gaps.ts';
import { createReindexJobs, type ReindexJobs } from '../../../src/repair/job-requests.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import type { StateStore } from '../../../src/store/store.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../../src/store/stored.ts';
import { recordOf } from '../fakes/bucket-record.ts';
import { createFakeClock, createFakeTelemetry } from '../fakes/ports.ts';
import { beginOrderNow } from './begin-order.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';

const never = new AbortController().signal;

type CloseGapsParts = Parameters<typeof createCloseGaps>[0];

/** The round that closes the gaps of a world with jobs. Its buckets and indices answer, unless `more` says otherwise. */
export function closeGapsOf(
  world: Pick<CloseGapsParts, 'state' | 'clock' | 'telemetry'> & {
    readonly jobs: Pick<ReindexJobs, 'start'>;
  },
  more: Partial<CloseGapsParts> = {},
): ReturnType<typeof createCloseGaps> {
  const { state, clock, telemetry, jobs } = world;
  const parts = { state, clock, telemetry, startJob: jobs.start, askToRepair: async () => ({ atMs: clock.nowMs() }) };
  return createCloseGaps({ ...parts, ...more });
}

/** Creates the world with one connected bucket, `photos`. `wrap`: its store as the jobs and the round see it. */
export async function createGapWorld({ wrap = (state) => state }: { readonly wrap?: (state: StateStore) => StateStore } = {}) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const reports = createGapReports({ state, clock, telemetry });
  const wrapped = wrap(state);
  const jobs = createReindexJobs({ state: wrapped, clock, telemetry });
  let refusal: Error | undefined;
  const startJob: ReindexJobs['start'] = (request, signal) =>
    refusal === undefined ? jobs.start(request, signal) : Promise.reject(refusal);
  let fault: Fault | undefined;
  const asked: string[] = [];
  const askToRepair: AskToRepair = async ({ bucket }, prefix) => {
    asked.push(`${bucket}/${prefix}`);
    return fault ?? { atMs: clock.nowMs() };
  };
  const round = createCloseGaps({ state: wrapped, startJob, askToRepair, clock, telemetry });
  const world = {
    state,
    clock,
    telemetry,
    jobs,
    async connect(bucket: string) {
      await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket, { source: 'routed' }));
    },
    /** Tells of a gap now. */
    async tell(more: Partial<GapReport> = {}) {
      const report = { bucket: 'photos', kind: 'bulk-delete', reason: 'DeleteObjects', seenAtMs: clock.nowMs(), ...more } as const;
      const told = reports.report(report);
      await clock.advance(1_000);
      await told;
    },
    round: () => round(never),
    async after(waitMs: number) {
      await clock.advance(waitMs);
      await round(never);
    },
    gap: async ({ bucket = 'photos', key }: Partial<Pick<GapReport, 'bucket' | 'key'>> = {}) =>
      readRecord(state, refs.gap(markId(bucket, key))),
    /** What was closed of the bucket, the oldest first. */
    closed: async (bucket = 'photos') => (await readRecord(state, refs.gapHistory(bucket)))?.closed ?? [],
    lastJob: async () => (await listAllRecords(state, 'job', jobSchema)).at(-1),
    allJobs: () => listAllRecords(state, 'job', jobSchema),
    async setJob(job: JobRecord | undefined, more: Partial<JobRecord>) {
      if (job === undefined) throw new Error('there is no such job');
      // it begins with its floor
      const isBegin = more.coversBeforeMs !== undefined && job.beginOrder === undefined;
      const begun = isBegin ? { beginOrder: await beginOrderNow(state, job.bucket, clock.nowMs()) } : {};
      await updateRecord(state, refs.job(job.id), (current) => current && { ...current, ...begun, ...more });
    },
    refuse: (error: Error | undefined) => {
      refusal = error;
    },
    /** What the bucket or its index answers when it is asked whether a re-index can begin; undefined: it can. */
    answer: (given: Fault | undefined) => {
      fault = given;
    },
    asked,
    /** The floor of the job is stored now, and it is done at once. */
    async finish(job: JobRecord | undefined, more: Partial<JobRecord> = {}) {
      await this.setJob(job, { state: 'done', coversBeforeMs: clock.nowMs(), finishedAtMs: clock.nowMs(), ...more });
    },
  };
  await world.connect('photos');
  return world;
}
