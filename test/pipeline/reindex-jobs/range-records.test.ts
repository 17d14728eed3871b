import { describe, expect, it } from 'vitest';
import { freshRange, listRanges, removeRanges } from '../../../src/pipeline/reindex-jobs/range-records.ts';
import { refs } from '../../../src/pipeline/records/stored.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

describe('the range records of a job that has ended', () => {
  it('are removed with one request for each, which waits for no list, and those of other jobs stay', async () => {
    const { state } = createMemoryStore();
    const store = async (jobId: string, count: number): Promise<void> => {
      for (let number = 0; number < count; number += 1) {
        const { id, kind } = refs.range(jobId, number);
        await state.put({ id, kind, record: freshRange(jobId, number, { from: '', nowMs: 0 }) }, null);
      }
    };
    await store('job-a', 3);
    await store('job-b', 2_048);
    await store('job-c', 3);
    const requests: string[] = [];
    let changed = false;
    const counting: StateStore = {
      ...state,
      get: (...asked) => {
        requests.push('get');
        return state.get(...asked);
      },
      list: async (...asked) => {
        requests.push('list');
        return state.list(...asked);
      },
      remove: async (id, version, signal, listed) => {
        requests.push(`remove, listed ${listed ?? 'now'}`);
        // a worker renews its lease at the same moment
        const isFirst = !changed;
        changed = true;
        const entry = isFirst ? await state.get(id) : undefined;
        if (entry !== undefined) await state.put({ id, kind: 'range', record: entry.record }, entry.version);
        return state.remove(id, version, signal);
      },
    };
    await removeRanges(counting, 'job-b');
    expect(await listRanges(state, 'job-b')).toEqual([]);
    expect(await listRanges(state, 'job-a')).toHaveLength(3);
    expect(await listRanges(state, 'job-c')).toHaveLength(3);
    const counts = Object.fromEntries([...Map.groupBy(requests, (each) => each)].map(([name, all]) => [name, all.length]));
    expect(counts).toEqual({ list: 3, 'remove, listed soon': 2_048, get: 1, 'remove, listed now': 1 });
  });
});
