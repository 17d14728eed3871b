import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterTransition,
  afterTurn,
  isStuck,
  mayTransition,
  phaseOf,
  reserved,
  tombstoneLimit,
  waitingToStart,
  type JobTransition,
} from '../../src/repair/job.rules.ts';
import { noCounts } from '../../src/records/comparison.ts';
import { DUE_AHEAD_MAX_MS, hasEnded, isDue, jobSchema, occupiesBucket, type JobRecord } from '../../src/records/job.ts';

const queued: JobRecord = { id: 'job', bucket: 'b', prefix: '', mode: 'apply', requestedBy: 'test', state: 'queued', createdAtMs: 1 };
const wait = { kind: 'wait', atMs: 2, coversBeforeMs: 1, beginOrder: 1, waitUntilMs: 60_001 } as const;
const compare = { kind: 'compare', atMs: 3, documentsAtStart: 10, tombstonesMax: 5, list_requests: 1 } as const;
const error = { code: 'bucket.missing', reason: 'gone' } as const;

const steps: Record<JobTransition['kind'], JobTransition> = {
  wait,
  compare,
  pause: { kind: 'pause', atMs: 4 },
  resume: { kind: 'resume', atMs: 5 },
  cancel: { kind: 'cancel', atMs: 6 },
  finish: { kind: 'finish', atMs: 6 },
  fail: { kind: 'fail', atMs: 6, error },
};

function after(job: JobRecord, ...kinds: readonly JobTransition['kind'][]): JobRecord {
  return kinds.reduce((current, kind) => {
    const next = afterTransition(current, steps[kind]);
    if (next === 'refused') throw new Error(`${kind} is refused of ${phaseOf(current)}`);
    return next;
  }, job);
}

it('Fix: a due time further ahead than work is ever put off was stored by a fast clock, and keeps no process from the job', () => {
  const aheadMs = [0, 1, DUE_AHEAD_MAX_MS, DUE_AHEAD_MAX_MS + 1];
  expect(aheadMs.map((ms) => isDue({ dueAtMs: 10 + ms }, 10))).toEqual([true, false, false, true]);
  expect(isDue({}, 10)).toBe(false);
});

describe('a wait that a fast clock has dated', () => {
  const DAY_MS = 86_400_000;
  const denied = { code: 'object.denied', reason: 'no' } as const;

  it('Fix: of a part lasts ten minutes from when a right clock sees it', () => {
    const end = { cursor: '', counts: noCounts, examples: {}, fault: denied };
    const seen = afterTurn(afterTurn({ cursor: '' }, end, DAY_MS), end, 1);
    expect([isStuck(seen, 600_000), isStuck(seen, 600_001)]).toEqual([false, true]);
    // what a right clock has dated, no later turn dates anew
    expect(afterTurn(seen, end, 300_000).fault?.sinceMs).toBe(1);
  });

  it('Fix: of a job that cannot begin counts from when a right clock sees it', () => {
    expect(waitingToStart(waitingToStart(queued, denied, DAY_MS), denied, 1).waits.sinceMs).toBe(1);
  });
});

describe('a job', () => {
  it('that has nothing to wait for compares at once, with one part, and covers nothing; once it has ended it has no part', () => {
    const comparing = after(queued, 'compare');
    expect(comparing).toMatchObject({ state: 'running', startedAtMs: 3, parts: [{ cursor: '' }] });
    expect(comparing.coversBeforeMs).toBeUndefined();
    for (const end of ['finish', 'cancel', 'fail'] as const) expect(after(comparing, end)).not.toHaveProperty('parts');
  });

  it('keeps the lease while it is paused, so that its process stores what it compared last, and is free when it is resumed', () => {
    const held = { ...after(queued, 'compare'), lease: { worker: 'w' }, dueAtMs: 9 };
    const paused = after(held, 'pause');
    expect([paused.lease, paused.dueAtMs]).toEqual([{ worker: 'w' }, undefined]);
    expect(after(paused, 'resume')).toMatchObject({ dueAtMs: 5, fruitless: 0 });
    expect(after(paused, 'resume')).not.toHaveProperty('lease');
    for (const end of ['finish', 'cancel', 'fail'] as const) {
      const ended = after(held, end);
      expect([ended.lease, ended.dueAtMs]).toEqual([undefined, undefined]);
    }
  });

  it('is resumed where it was paused', () => {
    expect(phaseOf(after(queued, 'pause', 'resume'))).toBe('queued');
    expect(phaseOf(after(queued, 'wait', 'pause', 'resume'))).toBe('waiting');
    expect(phaseOf(after(queued, 'wait', 'compare', 'pause', 'resume'))).toBe('comparing');
  });

  it('is not ended by a turn that comes to its end while it is paused', () => {
    const paused = after(queued, 'compare', 'pause');
    expect(afterTransition(paused, steps.finish)).toBe('refused');
    expect(afterTransition(paused, steps.fail)).toBe('refused');
  });

  it('stays a record that can be stored, and frees its bucket exactly when it is paused or over, whatever happens to it', () => {
    const sequence = fc.array(fc.constantFrom(...Object.values(steps)), { maxLength: 12 });
    fc.assert(
      fc.property(sequence, (all) => {
        let job = queued;
        for (const step of all) {
          const next = afterTransition(job, step);
          expect(mayTransition(job, step.kind)).toBe(next !== 'refused');
          if (next === 'refused') continue;
          expect(hasEnded(job)).toBe(false);
          job = next;
          expect(jobSchema.parse(job)).toEqual(job);
          expect(occupiesBucket(job)).toBe(job.state === 'queued' || job.state === 'running');
          expect(job.finishedAtMs !== undefined).toBe(hasEnded(job));
        }
      }),
    );
  });
});

describe('the deletion limit', () => {
  const comparing = after(queued, 'compare');

  it('grants nothing to a job that does not compare now, and nothing to a report', () => {
    for (const job of [queued, after(queued, 'wait'), after(comparing, 'pause'), after(comparing, 'cancel')]) {
      expect(reserved(job, 1).granted).toBe(0);
    }
    expect(reserved(after({ ...queued, mode: 'report' }, 'compare'), 1).granted).toBe(0);
  });

  it('allows a thousand or a tenth, anything to a gap of deletes, nothing where the bucket is empty, and what was allowed', () => {
    const facts = { documentsAtStart: 100, isEmptyBucket: false, areAnnounced: false, isAnyHeld: false, allowDeletes: undefined };
    expect(tombstoneLimit(facts)).toBe(1_000);
    expect(tombstoneLimit({ ...facts, documentsAtStart: 123_456 })).toBe(12_345);
    expect(tombstoneLimit({ ...facts, allowDeletes: 5 })).toBe(5);
    expect(tombstoneLimit({ ...facts, areAnnounced: true })).toBeUndefined();
    expect(tombstoneLimit({ ...facts, areAnnounced: true, isEmptyBucket: true })).toBe(0);
    expect(tombstoneLimit({ ...facts, isEmptyBucket: true, allowDeletes: 100 })).toBe(100);
  });

  it('allows nothing but what is allowed now, while deletions wait for a person', () => {
    const facts = { documentsAtStart: 123_456, isEmptyBucket: false, areAnnounced: false, isAnyHeld: true, allowDeletes: undefined };
    expect(tombstoneLimit(facts)).toBe(0);
    expect(tombstoneLimit({ ...facts, areAnnounced: true })).toBe(0);
    expect(tombstoneLimit({ ...facts, areAnnounced: true, allowDeletes: 7 })).toBe(7);
  });

  it('that is resumed while deletions wait for a person keeps no limit of its own', () => {
    for (const deletions of [{ reserved: 3 }, { limit: 1_000, reserved: 3 }])
      for (const [allowed, left] of [
        [{}, 0],
        [{ allowDeletes: 10 }, 7],
      ] as const) {
        const resumed = afterTransition(
          { ...comparing, ...allowed, state: 'paused', deletions },
          { kind: 'resume', atMs: 9, isHeld: true },
        );
        expect(resumed === 'refused' ? undefined : reserved(resumed, 100).granted).toBe(left);
      }
  });
});
