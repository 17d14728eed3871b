import { describe, expect, it } from 'vitest';
import type { EnrichMode } from '../../../src/domain/bucket.ts';
import { withKeysReported, withReport, type GapRecord, type GapReport } from '../../../src/domain/gaps/gap.ts';

const NOW_MS = 1_800_000_000_000;

const report = (more: Partial<GapReport> = {}): GapReport => ({
  bucket: 'photos',
  kind: 'bulk-delete',
  reason: 'DeleteObjects',
  seenAtMs: NOW_MS,
  ...more,
});
const told = { count: 1, toldAtMs: NOW_MS + 5_000, afterBeginOrder: 0, enrich: 'none' } as const;
const opened = (more: Partial<GapReport> = {}): GapRecord => withReport(undefined, report(more), told);
const closed = (more: Partial<GapRecord> = {}): GapRecord => ({
  ...opened(),
  state: 'closed',
  jobId: 'job-1',
  closedAtMs: NOW_MS,
  reconciledBeforeMs: NOW_MS + 60_000,
  ...more,
});

describe('a gap of a bucket whose documents have tags', () => {
  const loss = { bucket: 'photos', kind: 'loss', reason: 'expired', seenAtMs: NOW_MS } as const;
  const tagsOf = (said: Partial<GapReport>, enrich: EnrichMode): boolean | undefined =>
    withReport(undefined, { ...loss, ...said }, { ...told, enrich }).tags;

  it('asks for tags after every loss, since it is not known what was lost', () => {
    expect(tagsOf({}, 'tags')).toBe(true);
    expect(tagsOf({ prefix: 'k' }, 'tags')).toBe(true);
    expect(withReport(withReport(undefined, loss, { ...told, enrich: 'tags' }), loss, told).tags).toBe(true);
  });

  it.each<[string, Partial<GapReport>, EnrichMode]>([
    ['a loss where documents have none', {}, 'head'],
    ['deletes', { kind: 'bulk-delete' }, 'tags'],
    ['expirations', { kind: 'lifecycle' }, 'tags'],
    ['records that were handed over, which say what they are', { folded: true }, 'tags'],
  ])('does not after %s', (_, said, enrich) => {
    expect(tagsOf(said, enrich)).toBeUndefined();
  });

  it('does after changes of tags that were handed over', () => {
    expect(tagsOf({ folded: true, tags: true }, 'tags')).toBe(true);
  });
});

describe('a report', () => {
  it('of a gap that is closing puts it back to open, and leaves the job that may cover it all the same', () => {
    const closing: GapRecord = { ...opened(), state: 'closing', jobId: 'job-1', failures: 2 };
    expect(withReport(closing, report({ seenAtMs: NOW_MS + 1 }), told)).toMatchObject({
      state: 'open',
      jobId: 'job-1',
      failures: 2,
      lastSeenMs: NOW_MS + 1,
      count: 2,
    });
  });

  it('opens a closed gap anew, and remembers what is reconciled', () => {
    const again = withReport(closed({ failures: 3, count: 7 }), report({ seenAtMs: NOW_MS + 60_000 }), {
      count: 2,
      toldAtMs: 9,
      afterBeginOrder: 0,
      enrich: 'none',
    });
    expect(again).toEqual({
      ...opened({ seenAtMs: NOW_MS + 60_000 }),
      count: 2,
      openedAtMs: 9,
      toldAtMs: 9,
      afterBeginOrder: 0,
      reconciledBeforeMs: NOW_MS + 60_000,
    });
  });

  it('of deletes that are told after the reconcile that saw their effect leaves the gap closed', () => {
    const late = withReport(closed(), report({ seenAtMs: NOW_MS + 59_999 }), told);
    expect(late).toEqual(closed({ count: 2 }));
  });

  it('of a loss opens a closed gap whatever its time: that may be a slow machine’s', () => {
    const gap = closed({ kind: 'loss' });
    expect(withReport(gap, report({ kind: 'loss', seenAtMs: NOW_MS - 1 }), told).state).toBe('open');
  });

  it('of changes to come opens a gap that never was, and changes no other', () => {
    const standing = report({ kind: 'lifecycle', standing: true });
    const gap = withReport(undefined, standing, told);
    expect(gap).toMatchObject({ kind: 'lifecycle', state: 'open' });
    for (const each of [gap, closed({ kind: 'lifecycle' })]) expect(withReport(each, standing, told)).toBe(each);
  });
});

describe('keys that are told one by one', () => {
  const call = (requestId: string, isReported = false) => ({ requestId, isReported });

  it('cover a gap if they are those of each of its bulk deletes', () => {
    expect(opened({ calls: [call('r1', true), call('r2', true)] })).toMatchObject({ covered: true, keysToldMs: NOW_MS });
    expect(opened({ calls: [call('r1', true), call('r2')] })).not.toHaveProperty('covered');
    // of the same bulk delete, received twice
    expect(opened({ calls: [call('r1', true), call('r1')] })).toMatchObject({ covered: true });
  });

  it('Fix: prove nothing about the bulk deletes after theirs', () => {
    const gap = opened({ calls: [call('r1', true)] });
    expect(gap).toMatchObject({ covered: true });
    const next = withReport(gap, report({ seenAtMs: NOW_MS + 1_000, calls: [call('r2')] }), told);
    expect(next).not.toHaveProperty('covered');
    const reopened = withReport({ ...gap, state: 'closed' }, report({ seenAtMs: NOW_MS + 1_000, calls: [call('r2')] }), told);
    expect(reopened).not.toHaveProperty('covered');
  });

  it('cover a gap that is open already, once they are known of all of its bulk deletes', () => {
    const gap = opened({ calls: [call('r1'), call('r2')] });
    const half = withKeysReported(gap, { requestId: 'r2', eventTimeMs: NOW_MS });
    expect(half).not.toHaveProperty('covered');
    expect(withKeysReported(half, { requestId: 'r2', eventTimeMs: NOW_MS })).toBe(half);
    const whole = withKeysReported(half, { requestId: 'r1', eventTimeMs: NOW_MS - 5 });
    expect(whole).toMatchObject({ covered: true, keysToldMs: NOW_MS });
    expect(whole).not.toHaveProperty('unprovenCalls');
    expect(withKeysReported({ ...gap, state: 'closed' }, { requestId: 'r1', eventTimeMs: 0 })).toMatchObject({ state: 'closed' });
  });

  it('never cover a gap with a bulk delete of unknown request, with deletes that were handed over, or with too many to remember', () => {
    const reported = { calls: [call('r1', true)] };
    expect(opened({ calls: [{ isReported: false }] })).not.toHaveProperty('covered');
    for (const more of [{}, { folded: true }, { calls: [{ isReported: false }] }] as const) {
      const gap = withReport(opened(reported), report(more), told);
      expect(gap).not.toHaveProperty('covered');
      expect(withReport(gap, report(reported), told)).not.toHaveProperty('covered');
    }
    const many = opened({ calls: Array.from({ length: 101 }, (_, number) => call(`r${number}`)) });
    const proven = Array.from({ length: 101 }, (_, number) => `r${number}`).reduce(
      (gap, requestId) => withKeysReported(gap, { requestId, eventTimeMs: NOW_MS }),
      many,
    );
    expect(proven).not.toHaveProperty('covered');
    expect(many.unprovenCalls).toHaveLength(100);
  });
});
