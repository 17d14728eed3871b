import { describe, expect, it } from 'vitest';
import { createActivity } from '../../../src/pipeline/control/verbs.ts';
import { createReindexJobs } from '../../../src/pipeline/control/reindex-jobs.ts';
import { createDeadLetters } from '../../../src/pipeline/letters/dead-letters.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { recordOf } from '../../support/fakes/bucket-record.ts';
import { fakeDeadLetterQueues } from '../../support/fakes/dead-letter-queues.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { reindexRequest } from '../../support/requests.ts';

function setUp(queueWatch = fakeDeadLetterQueues()) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const gaps = createGapReports({ state, clock, telemetry });
  const queues = createFakeQueues(clock);
  const deadLetters = createDeadLetters({ queues, state, gaps, clock, telemetry, queueWatch, bucketQueueUrls: [] });
  return { state, jobs: createReindexJobs({ state, clock, telemetry }), activity: createActivity({ state, deadLetters }) };
}

describe('what goes on besides the buckets', () => {
  it('is the jobs that have not ended, and those of them that are paused', async () => {
    const { state, jobs, activity } = setUp();
    expect(await activity()).toEqual({ jobs: 0, paused_jobs: 0 });
    for (const jobState of ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const) {
      await updateRecord(state, refs.bucket(jobState), () => recordOf(jobState));
      const { id } = await jobs.request(reindexRequest({ bucket: jobState }), 'someone');
      await updateRecord(state, refs.job(id), (job) => job && { ...job, state: jobState });
    }
    expect(await activity()).toEqual({ jobs: 3, paused_jobs: 1 });
  });

  it('is the letters of all dead-letter queues as they were last read, with those that a reader has hidden for a moment', async () => {
    const queues = [
      { queueUrl: 'http://queues/one', of: [], attributes: { visible: 2, inFlight: 1 } },
      { queueUrl: 'http://queues/two', of: [], attributes: { visible: 4 } },
    ];
    expect(await setUp(fakeDeadLetterQueues(...queues)).activity()).toMatchObject({ dead_letters: 7 });
  });
});
