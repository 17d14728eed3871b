/** What the panel makes of a day's gaps and jobs: the strip, the line, and what a job is in words. */
import { describe, expect, it } from 'vitest';
import type { ShownBucket } from '../../src/registry/contract/bucket.ts';
import type { Gap } from '../../src/registry/contract/gaps.ts';
import type { Job } from '../../src/registry/contract/job.ts';
import { zeroCounts } from '../../src/registry/contract/job-view.ts';
import { endOf, spansOf, standingOf, storyOf } from '../../src/panel/browser/day.ts';
import { bucketAnswer, gap, job } from '../support/fakes/control.ts';

const NOW_MS = Date.UTC(2026, 10, 24, 16, 30);
const HOUR_MS = 3_600_000;
const ago = (hours: number): string => new Date(NOW_MS - hours * HOUR_MS).toISOString();

const compared: ShownBucket = { ...bucketAnswer, created_at: ago(100), last_compared_at: ago(30) };
const closed: Gap = { ...gap, state: 'closed', since: ago(6), closed_at: ago(3), job_id: 'job-2' };
const repair: Job = { ...job, id: 'job-2', state: 'done', started_at: ago(5), finished_at: ago(3) };
const report: Job = { ...repair, id: 'job-1', mode: 'report', started_at: ago(7), finished_at: ago(6) };
const found = { ...zeroCounts, missing: 37, stale: 12 };

const looks = (bucket: ShownBucket, gaps: readonly Gap[] = [], jobs: readonly Job[] = []) =>
  spansOf(bucket, { gaps, jobs }, NOW_MS).map(({ look, from, to }) => [look, from * 24, to * 24]);

describe('where buckets stand', () => {
  const differs = { ...compared, status: { state: 'differs', severity: 'bad', sentence: 's' } } as const;
  const asks = { ...differs, bucket: 'asks', status: { ...differs.status, act: { kind: 'reindex', command: 'c' } } } as const;

  it('Bug: is said of each that is not green also in the moments around its job, which another answer has', () => {
    const { you, tally } = standingOf([compared, asks, differs], undefined);
    expect([you, tally]).toEqual([[asks], [differs]]);
    const after = standingOf([differs], { gaps: [{ ...gap, state: 'open', job_id: 'job-2' }], jobs: [repair] });
    expect(after).toEqual({ you: [], tally: [differs], jobs: [] });
  });

  it('Bug: may need a person while events wait for the index, though no button ends that', () => {
    const waits = { ...compared, status: { state: 'waiting', severity: 'bad', sentence: 's' } } as const;
    expect(standingOf([waits], undefined)).toEqual({ you: [waits], tally: [], jobs: [] });
  });

  it('is said by a job that runs, unless it only reports', () => {
    const runs: Job = { ...repair, state: 'running', bucket: differs.bucket };
    expect(standingOf([differs], { gaps: [], jobs: [runs] })).toEqual({ you: [], tally: [], jobs: [runs] });
    expect(standingOf([differs], { gaps: [], jobs: [{ ...runs, mode: 'report' }] }).tally).toEqual([differs]);
    expect(standingOf([differs], { gaps: [], jobs: [{ ...runs, state: 'paused' }] })).toEqual({ you: [], tally: [differs], jobs: [] });
  });
});

describe('the strip of a day', () => {
  it('is green only since the bucket was connected, and only if all of it was compared', () => {
    expect(looks(compared)).toEqual([
      ['unknown', 0, 24],
      ['agrees', 0, 24],
    ]);
    expect(looks({ ...compared, created_at: ago(6) })).toContainEqual(['agrees', 18, 24]);
    expect(looks({ ...compared, last_compared_at: undefined })).toEqual([['unknown', 0, 24]]);
  });

  it('has a gap from its first change to its end, and the repair over it', () => {
    expect(looks(compared, [closed], [report, repair]).slice(2)).toEqual([
      ['gap', 18, 21],
      ['repairs', 19, 21],
    ]);
    expect(looks(compared, [{ ...gap, since: ago(40) }]).slice(2)).toEqual([['gap', 0, 24]]);
  });

  it('shows what is wrong now since it began', () => {
    const lost = { ...compared, status: { state: 'events_lost', severity: 'bad', sentence: 's', since: ago(12) } } as const;
    expect(looks(lost).slice(2)).toEqual([['differs', 12, 24]]);
    expect(looks({ ...lost, status: { ...lost.status, state: 'gap_open', severity: 'warning' } }).slice(2)).toEqual([['gap', 12, 24]]);
  });
});

describe('the line of a day', () => {
  it('says what was found, what Tally did about it, and how it ended, in order', () => {
    const drift: Gap = { ...closed, reasons: [{ kind: 'drift', count: 1, last_seen_at: ago(6), example: 'found' }] };
    const day = {
      gaps: [drift],
      jobs: [
        { ...repair, counts: { ...found, written: 49 } },
        { ...report, counts: found },
      ],
    };
    expect(storyOf(compared, day, NOW_MS).map(({ at, text, job: of }) => [at, text, of])).toEqual([
      [ago(6), 'a report found 49 differences', 'job-1'],
      [ago(5), 're-index', 'job-2'],
      [ago(3), 're-index ended: 49 changes', 'job-2'],
      [ago(3), 'in agreement', undefined],
    ]);
  });

  it('has what is wrong with the bucket, unless an open gap says it', () => {
    const lost = { status: { state: 'events_lost', severity: 'bad', sentence: 'Its events are being lost', since: ago(2) } } as const;
    expect(storyOf(lost, { gaps: [], jobs: [] }, NOW_MS)).toEqual([{ at: ago(2), text: 'Its events are being lost' }]);
    expect(storyOf(lost, { gaps: [{ ...gap, since: ago(1) }], jobs: [] }, NOW_MS)).toEqual([{ at: ago(1), text: gap.why }]);
  });
});

it.each<readonly [Partial<Job>, string]>([
  [{ mode: 'report', state: 'done', counts: zeroCounts }, 'a report found no difference'],
  [{ state: 'done', counts: zeroCounts }, 're-index ended: nothing to write'],
  [{ state: 'done', counts: { ...zeroCounts, tombstones: 1, held: 2 } }, 're-index ended: 1 change, 2 deletions held back'],
  [{ state: 'failed', error: { code: 'object.denied', reason: 'a long one' } }, 're-index failed: object.denied'],
  [{ mode: 'report', state: 'cancelled' }, 'report cancelled'],
])('a job in words ended: %j', (more, text) => {
  expect(endOf({ ...job, ...more })).toBe(text);
});
