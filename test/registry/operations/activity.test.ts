import { describe, expect, it } from 'vitest';
import { activityOf } from '../../../src/registry/operations/operations.ts';
import { refs, updateRecord } from '../../../src/store/stored.ts';
import { recordOf } from '../../support/fakes/bucket-record.ts';
import { reindexRequest } from '../../support/requests.ts';
import { createControlWorld } from '../../support/worlds/control.ts';

describe('what goes on besides the buckets', () => {
  it('is the jobs that have not ended', async () => {
    const { state, jobs, deadLetters } = createControlWorld({ letterQueues: [] });
    expect(await activityOf({ state, deadLetters })).toEqual({ jobs: 0 });
    for (const jobState of ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const) {
      await updateRecord(state, refs.bucket(jobState), () => recordOf(jobState));
      const { id } = await jobs.request(reindexRequest({ bucket: jobState }), 'someone');
      await updateRecord(state, refs.job(id), (job) => job && { ...job, state: jobState });
    }
    expect(await activityOf({ state, deadLetters })).toEqual({ jobs: 3 });
  });
});
