/** A compare that finds a change of which no event came takes back the proof of the bucket's events. */
import { expect, it } from 'vitest';
import type { BucketRecord } from '../../src/records/bucket.ts';
import type { DirtyMark } from '../../src/records/dirty.ts';
import type { Trouble } from '../../src/records/receiving.ts';
import { createQuestionProof } from '../../src/repair/question-proof.ts';
import { gapsOf } from '../../src/observing/gaps.ts';
import { readRecord, refs } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { markSeenAt } from '../support/fakes/gap-records.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The bucket was proven ten hours ago and compared eight hours ago; the object was changed two hours ago. */
interface Case {
  readonly record?: Partial<BucketRecord>;
  readonly changedAgoMs?: number;
  readonly mark?: { readonly fromAgoMs: number; readonly toAgoMs: number } & Partial<DirtyMark>;
  readonly troubles?: readonly Trouble[];
}

async function after({ record = {}, changedAgoMs = 2 * HOUR_MS, mark, troubles = [] }: Case) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const nowMs = clock.nowMs();
  const photos = recordOf('photos', {
    provenAtMs: nowMs - 10 * HOUR_MS,
    lastComparedAtMs: nowMs - 8 * HOUR_MS,
    ...record,
  });
  await state.put({ id: 'bucket:photos', kind: 'bucket', record: photos }, null);
  if (mark !== undefined) {
    const { fromAgoMs, toAgoMs, ...rest } = mark;
    const stored = { ...markSeenAt(nowMs - toAgoMs, rest), sinceMs: nowMs - fromAgoMs };
    await state.put({ id: stored.id, kind: 'gap', record: stored }, null);
  }
  const questionProof = createQuestionProof({
    state,
    clock,
    telemetry: createFakeTelemetry(),
    processes: { troubles: async () => troubles },
  });
  questionProof(photos, nowMs - changedAgoMs);
  questionProof(photos, nowMs - changedAgoMs);
  await clock.advance(1_000);
  const now = await readRecord(state, refs.bucket('photos'));
  return { isProven: now?.provenAtMs !== undefined, waySinceMs: now?.waySinceMs, gaps: await gapsOf(state, 'photos'), nowMs };
}

// wiring that was broken for three minutes between two checks
it('a change outside every mark clears the proof, and marks the bucket until an event arrives', async () => {
  const { isProven, waySinceMs, gaps, nowMs } = await after({});
  expect(isProven).toBe(false);
  expect(waySinceMs).toBeGreaterThanOrEqual(nowMs);
  expect(gaps).toMatchObject([
    { unproven: 'events', reasons: [{ kind: 'connection', count: 1, example: expect.stringMatching(/no event reported$/) }] },
  ]);
});

it.each<[string, Case]>([
  ['that may still be on its way', { changedAgoMs: 19 * MINUTE_MS }],
  ['from before the proof', { changedAgoMs: 11 * HOUR_MS }],
  ['from before the last compare', { changedAgoMs: 9 * HOUR_MS }],
  ['that a mark covers', { mark: { fromAgoMs: 3 * HOUR_MS, toAgoMs: HOUR_MS } }],
  ['of a bucket that an audit trail reports', { record: { source: 'routed' } }],
  ['of a bucket whose store posts its events, some of which get lost', { record: { source: 'webhook' } }],
  ['of a bucket whose events wait', { troubles: [{ level: 'bucket', name: 'photos', code: 's3.unavailable', reason: 'so', sinceMs: 1 }] }],
  [
    'of a bucket whose queue is behind',
    { record: { eventQueues: [{ queueUrl: 'q', atMs: createFakeClock().nowMs(), waitedMs: 3 * HOUR_MS }] } },
  ],
  ['of a bucket that is not proven', { record: { provenAtMs: undefined } }],
])('a change %s says nothing', async (_, each) => {
  const before = each.mark === undefined ? 0 : 1;
  const { isProven, gaps } = await after(each);
  expect(isProven).toBe(each.record?.provenAtMs !== undefined || !('provenAtMs' in (each.record ?? {})));
  expect(gaps).toHaveLength(before);
});

it('a mark of another time explains nothing', async () => {
  const { isProven } = await after({ mark: { fromAgoMs: 7 * HOUR_MS, toAgoMs: 3 * HOUR_MS } });
  expect(isProven).toBe(false);
});
