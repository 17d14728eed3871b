/** The control plane on stores in memory: buckets, gaps, jobs, dead letters and AWS, in manual time. */
import type { AddBucketRequest } from '../../../src/registry/contract/buckets.ts';
import { checkingRequests } from '../requests.ts';
import { bucketRecordSchema } from '../../../src/records/bucket.ts';
import { markSchema } from '../../../src/records/dirty.ts';
import { jobSchema } from '../../../src/records/job.ts';
import { createConnectBucket } from '../../../src/connect/connect.ts';
import { createCloseGaps } from '../../../src/repair/close-gaps.ts';
import { addBucket } from '../../../src/registry/operations/add-bucket.ts';
import { createReindexJobs } from '../../../src/repair/job-requests.ts';
import { operationsOn } from './operations.ts';
import { createProcesses } from '../../../src/observing/processes.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import { createDeadLetters } from '../../../src/repair/dead-letters.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../../src/store/stored.ts';
import { createFakeAws, connectionsOn, REGION } from '../fakes/aws-parts.ts';
import { fakeDeadLetterQueues, type FakeDeadLetterQueue } from '../fakes/dead-letter-queues.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createFakeClock, createFakeQueues, createFakeStorage, createFakeTelemetry } from '../fakes/ports.ts';
import { createProvingCheck } from '../fakes/proving-check.ts';
import { beginOrderNow } from './begin-order.ts';

export const QUEUE = 'http://queues/events';
export const LETTERS = 'http://queues/dead';

interface ControlOptions {
  readonly store?: Pick<Store, 'objects' | 'state' | 'audit' | 'usage'>;
  readonly wrap?: (state: StateStore) => StateStore;
  /** Buckets that exist. */
  readonly buckets?: readonly string[];
  readonly letterQueues?: readonly FakeDeadLetterQueue[];
  /** Time passes by itself while something sleeps. */
  readonly autoAdvance?: boolean;
}

/** Creates the world, in which no bucket is connected. */
export function createControlWorld({
  store = createMemoryStore(),
  wrap = (state) => state,
  buckets = ['photos'],
  letterQueues = [{ queueUrl: LETTERS, of: [QUEUE] }],
  autoAdvance = false,
}: ControlOptions = {}) {
  const { objects, state: plainState } = store;
  const state = wrap(plainState);
  const clock = createFakeClock({ autoAdvance });
  const telemetry = createFakeTelemetry();
  const storage = createFakeStorage(clock);
  for (const bucket of buckets) storage.createBucket(bucket, { region: REGION });
  const gaps = createGapReports({ state, clock, telemetry });
  const processes = createProcesses({ state, clock });
  const connectBucket = createConnectBucket({ state, objects, storage, gaps, clock, telemetry });
  const jobs = createReindexJobs({ state, clock, telemetry });
  const queues = createFakeQueues(clock);
  const queueWatch = fakeDeadLetterQueues(...letterQueues);
  const deadLetters = createDeadLetters({ queues, state, gaps, clock, telemetry, queueWatch, bucketQueueUrls: [QUEUE] });
  const aws = createFakeAws();
  for (const bucket of buckets) aws.parts.notifications.set(bucket, { entries: [], eventBridge: false });
  const connections = connectionsOn(aws, { state, storage, clock });
  const checkConnection = createProvingCheck({ state, clock });
  const closeGaps = createCloseGaps({ state, jobs, askToRepair: async () => ({ atMs: clock.nowMs() }), clock, telemetry });
  const parts = { state, clock, connectBucket, connections, jobs, telemetry };
  const allJobs = () => listAllRecords(state, 'job', jobSchema);

  /** The calendar closes what is due after this time. */
  async function after(waitMs: number): Promise<void> {
    await clock.advance(waitMs);
    await closeGaps(new AbortController().signal);
  }

  return {
    objects,
    state,
    plainState,
    clock,
    telemetry,
    storage,
    gaps,
    connectBucket,
    jobs,
    queues,
    deadLetters,
    aws,
    connections,
    processes,
    operations: checkingRequests(operationsOn({ store, storage, clock, telemetry, gaps, connectBucket, deadLetters, connections })),
    add: (request: AddBucketRequest, by: string) => addBucket(parts, request, by, new AbortController().signal),
    allJobs,
    allGaps: () => listAllRecords(state, 'gap', markSchema),
    record: (bucket = 'photos') => readRecord(state, refs.bucket(bucket)),
    after,
    /** The watch and the calendar run every minute, and every job that was queued a minute ago is done, without proof if it does not wait. */
    async run(minutes: number): Promise<void> {
      for (let minute = 0; minute < minutes; minute += 1) {
        await clock.advance(60_000);
        for (const record of await listAllRecords(state, 'bucket', bucketRecordSchema)) await checkConnection(record);
        for (const { id, bucket, now } of (await allJobs()).filter((job) => job.state === 'queued')) {
          const nowMs = clock.nowMs();
          const covers = now === true ? {} : { coversBeforeMs: nowMs, beginOrder: await beginOrderNow(state, bucket, nowMs) };
          await updateRecord(state, refs.job(id), (job) => job && { ...job, state: 'done' as const, finishedAtMs: nowMs, ...covers });
        }
        await after(0);
      }
    },
  };
}
