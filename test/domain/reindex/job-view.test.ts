import { expect, it } from 'vitest';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import { viewOf } from '../../../src/domain/reindex/job-view.ts';
import type { RangeRecord } from '../../../src/domain/reindex/job.ts';
import { jobMadeAt } from '../../support/fakes/gap-records.ts';

const job = jobMadeAt(0, { comparingAtMs: 0, rangesCut: 3 });

function range(number: number, from: string, { cursor = from, done = false } = {}): RangeRecord {
  return { jobId: 'job-1', number, from, cursor, done, counts: noCounts, fruitless: 0 };
}

it.each([
  ['nothing is compared yet', [range(0, ''), range(1, 'h'), range(2, 'p')], undefined],
  ['a later range is further', [range(0, '', { cursor: 'c' }), range(1, 'h', { done: true }), range(2, 'p', { cursor: 'z' })], 'c'],
  ['the first is done', [range(0, '', { cursor: 'h', done: true }), range(1, 'h', { cursor: 'k' }), range(2, 'p')], 'k'],
  ['a split range has a later number', [range(0, '', { done: true }), range(1, 'p', { cursor: 'q' }), range(2, 'h', { cursor: 'i' })], 'i'],
  [
    'keys are in UTF-8 order',
    [range(0, '', { done: true }), range(1, '\u{1f600}', { cursor: '\u{1f601}' }), range(2, '\u{ffee}')],
    '\u{ffee}',
  ],
  ['all are done', [range(0, '', { done: true }), range(1, 'h', { done: true }), range(2, 'p', { done: true })], undefined],
  ['one is not stored yet, which may be the first', [range(1, 'h', { cursor: 'k' }), range(2, 'p')], undefined],
])('the cursor claims nothing that is not compared: %s', (_, ranges, cursor) => {
  expect(viewOf(job, ranges, 1_000).cursor).toBe(cursor);
});
