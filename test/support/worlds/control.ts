/** The control plane on stores in memory: buckets, gaps, jobs, dead letters and AWS, in manual time. */
import type { AddBucketRequest } from '../../../src/registry/contract/buckets.ts';
import { checkingRequests } from '../requests.ts';
import { bucketRecordSchema } from '../../../src/records/bucket.ts';
import { markSchema } from '../../../src/records/dirty.ts';
import { jobSchema } from '../../../src/records/job.ts';
import { noteArrivals } from '../../../src/observing/gaps.ts';
import { addBucket } from '../../../src/registry/operations/buckets.ts';
import { createSubjects } from './operations.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../../src/store/stored.ts';
import { REGION } from '../fakes/aws-parts.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../fakes/ports.ts';
import { beginOrderNow } from './begin-order.ts';
import { closeGapsOf } from './gaps.ts';

interface ControlOptions {
  readonly store?: Pick<Store, 'objects' | 'state' | 'audit' | 'usage'>;
  readonly wrap?: (state: StateStore) => StateStore;
  /** Buckets that exist. */
  readonly buckets?: readonly string[];
  /** Time passes by itself while something sleeps. */
  readonly autoAdvance?: boolean;
}

/** Creates the world, in which no bucket is connected. */
export function createControlWorld({
  store = createMemoryStore(),
  wrap = (state) => state,
  buckets = ['photos'],
  autoAdvance = false,
}: ControlOptions = {}) {
  const { objects, state: plainState } = store;
  const state = wrap(plainState);
  const clock = createFakeClock({ autoAdvance });
  const telemetry = createFakeTelemetry();
  const subjects = createSubjects({ store: { ...store, state }, clock, telemetry });
  const { storage, aws, connectBucket, jobs, connections } = subjects;
  for (const bucket of buckets) {
    storage.createBucket(bucket, { region: REGION });
    aws.parts.notifications.set(bucket, { entries: [], eventBridge: false });
  }
  const closeGaps = closeGapsOf({ state, clock, telemetry, jobs });
  const parts = { state, clock, connectBucket, connections, jobs, telemetry };
  const allJobs = () => listAllRecords(state, 'job', jobSchema);

  /** The calendar closes what is due after this time. */
  async function after(waitMs: number): Promise<void> {
    await clock.advance(waitMs);
    await closeGaps(new AbortController().signal);
  }

  return {
    ...subjects,
    objects,
    state,
    plainState,
    clock,
    telemetry,
    operations: checkingRequests(subjects.operations),
    add: (request: AddBucketRequest, by: string) => addBucket(parts, request, by, new AbortController().signal),
    allJobs,
    allGaps: () => listAllRecords(state, 'gap', markSchema),
    record: (bucket = 'photos') => readRecord(state, refs.bucket(bucket)),
    after,
    /** The watch and the calendar run every minute, and every job that was queued a minute ago is done, without proof if it does not wait. */
    async run(minutes: number): Promise<void> {
      for (let minute = 0; minute < minutes; minute += 1) {
        await clock.advance(60_000);
        for (const record of await listAllRecords(state, 'bucket', bucketRecordSchema))
          await noteArrivals({ state, clock }, record, ['created', 'removed']);
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
