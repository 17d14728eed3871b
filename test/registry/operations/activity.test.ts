import { describe, expect, it } from 'vitest';
import { refs, updateRecord } from '../../../src/store/stored.ts';
import { localActor } from '../../support/identity/actors.ts';
import { recordOf } from '../../support/fakes/bucket-record.ts';
import { reindexRequest } from '../../support/requests.ts';
import { createControlWorld } from '../../support/worlds/control.ts';

describe('what goes on besides the buckets', () => {
  it('is the jobs that have not ended', async () => {
    const { state, jobs, operations } = createControlWorld({ letterQueues: [] });
    const context = { actor: localActor, signal: new AbortController().signal };
    const activity = async () => (await operations.listBuckets({}, context)).activity;
    expect(await activity()).toEqual({ jobs: 0 });
    for (const jobState of ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const) {
      await updateRecord(state, refs.bucket(jobState), () => recordOf(jobState));
      const { id } = await jobs.request(reindexRequest({ bucket: jobState }), 'someone');
      await updateRecord(state, refs.job(id), (job) => job && { ...job, state: jobState });
    }
    expect(await activity()).toEqual({ jobs: 3 });
  });
});
