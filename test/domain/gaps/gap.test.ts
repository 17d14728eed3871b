import { describe, expect, it } from 'vitest';
import { withKeysReported, withSighting, type GapRecord, type GapSighting } from '../../../src/domain/gaps/gap.ts';

const DAY_MS = 86_400_000;
const NOW_MS = 1_800_000_000_000;

const sighting = (more: Partial<GapSighting> = {}): GapSighting => ({
  bucket: 'photos',
  kind: 'bulk-delete',
  reason: 'DeleteObjects',
  seenAtMs: NOW_MS,
  ...more,
});
const told = { count: 1, toldAtMs: NOW_MS + 5_000 };
const opened = (more: Partial<GapSighting> = {}): GapRecord => withSighting(undefined, sighting(more), told);
const closed = (more: Partial<GapRecord> = {}): GapRecord => ({
  ...opened(),
  state: 'closed',
  jobId: 'job-1',
  closedAtMs: NOW_MS,
  reconciledBeforeMs: NOW_MS + 60_000,
  ...more,
});

describe('a sighting', () => {
  it('of a gap that is closing puts it back to open, and leaves the job that may cover it all the same', () => {
    const closing: GapRecord = { ...opened(), state: 'closing', jobId: 'job-1', failures: 2 };
    expect(withSighting(closing, sighting({ seenAtMs: NOW_MS + 1 }), told)).toMatchObject({
      state: 'open',
      jobId: 'job-1',
      failures: 2,
      lastSeenMs: NOW_MS + 1,
      count: 2,
    });
  });

  it('opens a closed gap anew, and remembers what is reconciled', () => {
    const again = withSighting(closed({ failures: 3, count: 7 }), sighting({ seenAtMs: NOW_MS + 60_000 }), { count: 2, toldAtMs: 9 });
    expect(again).toEqual({
      ...opened({ seenAtMs: NOW_MS + 60_000 }),
      count: 2,
      openedAtMs: 9,
      toldAtMs: 9,
      reconciledBeforeMs: NOW_MS + 60_000,
    });
  });

  it('of deletes that are told after the reconcile that saw their effect leaves the gap closed', () => {
    const late = withSighting(closed(), sighting({ seenAtMs: NOW_MS + 59_999 }), told);
    expect(late).toEqual(closed({ count: 2 }));
  });

  it('of a loss opens a closed gap whatever its time: that may be a slow machine’s', () => {
    const gap = closed({ kind: 'loss' });
    expect(withSighting(gap, sighting({ kind: 'loss', seenAtMs: NOW_MS - 1 }), told).state).toBe('open');
  });

  it('of changes to come opens a gap that never was, and changes no other', () => {
    const standing = sighting({ kind: 'lifecycle', standing: true });
    const gap = withSighting(undefined, standing, told);
    expect(gap).toMatchObject({ kind: 'lifecycle', state: 'open' });
    for (const each of [gap, closed({ kind: 'lifecycle' })]) expect(withSighting(each, standing, told)).toBe(each);
  });
});

describe('keys that are told one by one', () => {
  it('cover bulk deletes for a day', () => {
    expect(opened({ keysToldMs: NOW_MS - DAY_MS })).toMatchObject({ covered: true, keysToldMs: NOW_MS - DAY_MS });
    expect(opened({ keysToldMs: NOW_MS - DAY_MS - 1 })).not.toHaveProperty('covered');
    expect(opened()).not.toHaveProperty('covered');
  });

  it('cover a gap that is open already, and those that follow it', () => {
    const gap = withKeysReported(opened(), NOW_MS);
    expect(gap).toMatchObject({ covered: true });
    expect(withSighting(gap, sighting({ seenAtMs: NOW_MS + DAY_MS }), told)).toMatchObject({ covered: true });
    const reopened = withSighting(closed({ keysToldMs: NOW_MS }), sighting({ seenAtMs: NOW_MS + 70_000 }), told);
    expect(reopened).toMatchObject({ covered: true, keysToldMs: NOW_MS });
  });

  it('no longer cover once a later bulk delete came without them for a day', () => {
    const gap = withKeysReported(opened(), NOW_MS);
    expect(withSighting(gap, sighting({ seenAtMs: NOW_MS + DAY_MS + 1 }), told)).not.toHaveProperty('covered');
  });
});
