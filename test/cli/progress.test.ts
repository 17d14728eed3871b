import { describe, expect, it } from 'vitest';
import { createProgress, jobKnown } from '../../src/cli/progress.ts';
import type { Job } from '../../src/registry/contract/job.ts';
import { job, runningJob } from '../support/fakes/control.ts';

const START_MS = Date.UTC(2026, 0, 2);

function progressOf() {
  const written: string[] = [];
  let nowMs = START_MS;
  const progress = createProgress({ write: (text) => written.push(text), nowMs: () => nowMs, isSilent: false });
  return {
    ...progress,
    show: (each: Job): void => progress.show(jobKnown(each, nowMs)),
    wait: (ms: number): void => void (nowMs += ms),
    lines: (): readonly string[] => written.join('').split('\n').slice(0, -1),
  };
}

const waiting: Job = { ...job, state: 'running', phase: 'waiting', waits_until: new Date(START_MS + 43_000).toISOString() };

describe('the progress of a job', () => {
  it('counts down the wait for late events', () => {
    const progress = progressOf();
    progress.show(waiting);
    progress.wait(40_000);
    progress.show(waiting);
    expect(progress.lines()).toEqual(['job-1: waiting for late events, 43 s left', 'job-1: waiting for late events, 3 s left']);
  });

  it('has no share where nobody knows how much there is', () => {
    const { progress: _, ...unknown } = runningJob;
    const progress = progressOf();
    progress.show(unknown);
    expect(progress.lines()).toEqual(['job-1: comparing, 1,000 objects, 25,000/s, missing 6, stale 4, phantom 2']);
  });

  it('writes a line at each change of state, else one every ten seconds', () => {
    const progress = progressOf();
    progress.show(job);
    for (let step = 1; step <= 25; step += 1) {
      progress.wait(1_000);
      progress.show({ ...runningJob, progress: step / 100 });
    }
    progress.show({ ...runningJob, state: 'paused' });
    expect(progress.lines().map((line) => line.split(',')[0])).toEqual([
      'job-1: queued',
      'job-1: 1 %',
      'job-1: 11 %',
      'job-1: 21 %',
      'job-1: paused',
    ]);
  });

  it('repeats no line that says nothing new', () => {
    const progress = progressOf();
    for (let step = 0; step < 10; step += 1) {
      progress.show(job);
      progress.wait(60_000);
    }
    expect(progress.lines()).toEqual(['job-1: queued']);
  });
});
