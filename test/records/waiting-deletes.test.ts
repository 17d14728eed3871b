import { describe, expect, it } from 'vitest';
import { countOf, keysOverlap, outermost, withHeld, type WaitingDeletes } from '../../src/records/waiting-deletes.ts';
import { omit } from '../../src/base/defined.ts';
import type { JobRecord } from '../../src/records/job.ts';

const NOW_MS = 1_800_000_000_000;
const waits = (count: number | undefined, prefix = '', order = 1): WaitingDeletes => ({
  prefix,
  ...(count !== undefined && { count }),
  jobId: 'job-1',
  order,
  sinceMs: NOW_MS,
});

function after(
  waiting: readonly WaitingDeletes[],
  held: number,
  { isWhole = true, ...job }: Partial<JobRecord> & { readonly isWhole?: boolean } = {},
): readonly WaitingDeletes[] {
  return withHeld(waiting, { id: 'job-1', prefix: '', beginOrder: 1, ...job }, { held, isWhole, nowMs: NOW_MS, lastOrder: 5 });
}

describe('what a job holds back', () => {
  it('waits with the latest number of a job that compared everything, and never less than was known of one that did not', () => {
    expect(after([], 7)).toEqual([waits(7)]);
    expect(after([waits(7)], 3)).toEqual([waits(3)]);
    expect(after([waits(7)], 3, { isWhole: false })).toEqual([waits(7)]);
    expect(after([waits(7)], 9, { isWhole: false })).toEqual([waits(9)]);
  });

  it('is settled by a job of all of its keys that began no earlier and holds nothing back, the released one included', () => {
    for (const beginOrder of [1, 2]) expect(after([waits(7)], 0, { beginOrder })).toEqual([]);
    expect(after([waits(7, 'a/')], 0)).toEqual([]);
    const before = [waits(7, '', 2)];
    for (const job of [{ prefix: 'a/', beginOrder: 3 }, { beginOrder: 1 }, { now: true, beginOrder: 3 }, { isWhole: false, beginOrder: 3 }])
      expect(after(before, 0, job)).toBe(before);
  });

  it('of a prefix is among that of a job of the whole bucket', () => {
    expect(after([waits(3, 'a/'), waits(4, 'b/')], 9)).toEqual([waits(9)]);
    expect(after([waits(9)], 3, { prefix: 'a/', beginOrder: 2 })).toEqual([waits(9), waits(3, 'a/', 2)]);
    expect(countOf([waits(9), waits(3, 'a/')])).toBe(9);
    expect(countOf([waits(3, 'a/'), waits(4, 'b/')])).toBe(7);
  });

  it('Fix: of a job that was stopped early does not hide what waits within its prefix', () => {
    const inner = [waits(100, 'a/b/'), waits(105, 'a/c/')];
    const stopped = after(inner, 5, { id: 'job-2', prefix: 'a/', isWhole: false });
    expect(stopped).toHaveLength(3);
    expect([countOf(stopped), outermost(stopped)]).toEqual([205, inner]);
    expect(countOf(after(inner, 300, { id: 'job-2', prefix: 'a/', isWhole: false }))).toBe(300);
    expect(countOf([...stopped, waits(7, 'b/')])).toBe(212);
  });

  it('by a job without a place among the beginnings is settled by any that begins later', () => {
    const waiting = withHeld([], { id: 'job-1', prefix: '', now: true }, { held: 7, isWhole: true, nowMs: NOW_MS, lastOrder: 5 });
    expect(after(waiting, 0, { beginOrder: 5 })).toBe(waiting);
    expect(after(waiting, 0, { beginOrder: 6 })).toEqual([]);
  });

  it('under more than a hundred prefixes waits as the whole bucket’s', () => {
    const many = Array.from({ length: 100 }, (_, number) => waits(1, `p${String(number).padStart(3, '0')}/`, number));
    expect(after(many, 1, { prefix: 'q/', beginOrder: 3 })).toEqual([omit(waits(101, '', 99), 'jobId')]);
  });

  it('Fix: of a job that was stopped waits until it, or a later one, says how many there are', () => {
    const stopped = after([], 0, { isWhole: false });
    expect(stopped).toEqual([waits(undefined)]);
    expect(after(stopped, 0, { isWhole: false })).toBe(stopped);
    expect(after([waits(7)], 0, { id: 'job-2', isWhole: false })).toEqual([waits(7)]);
    expect(countOf([...stopped, waits(3, 'a/')])).toBe(3);
    for (const job of [{}, { now: true }, { id: 'job-2', beginOrder: 2 }]) expect(after(stopped, 0, job)).toEqual([]);
    for (const job of [
      { id: 'job-2', now: true },
      { id: 'job-2', beginOrder: 0 },
    ])
      expect(after(stopped, 0, job)).toBe(stopped);
  });

  it('Fix: of an older job, or of one that does not wait for late events, is never less than a newer one knows', () => {
    for (const job of [{ beginOrder: 1 }, { beginOrder: 3, now: true }])
      expect(after([waits(7, '', 2)], 3, job)).toMatchObject([{ count: 7, order: Math.max(2, job.beginOrder) }]);
  });

  it('asks again with the job that finds what a person declined', () => {
    expect(after([{ ...waits(7), declinedAtMs: NOW_MS }], 7, { id: 'job-2', beginOrder: 2 })).toEqual([
      { ...waits(7, '', 2), jobId: 'job-2' },
    ]);
  });

  it('concerns the keys of its prefix, and so those of each prefix within it and around it', () => {
    const answers = ['', 'a', 'a/b', 'a/b/c', 'a/c', 'b'].map((prefix) => keysOverlap('a/b', prefix));
    expect(answers).toEqual([true, true, true, true, false, false]);
  });
});
