import { describe, expect, it } from 'vitest';
import { createProgress, jobKnown } from '../../src/cli/progress.ts';
import type { Job } from '../../src/registry/contract/job.ts';
import { job, runningJob } from '../support/fakes/control.ts';

const START_MS = Date.UTC(2026, 0, 2);

function progressOf(columns?: number) {
  const written: string[] = [];
  let nowMs = START_MS;
  const terminal = columns === undefined ? undefined : { columns: () => columns };
  const progress = createProgress({ write: (text) => written.push(text), nowMs: () => nowMs, terminal, isSilent: false });
  return {
    ...progress,
    show: (each: Job): void => progress.show(jobKnown(each, nowMs)),
    written,
    wait: (ms: number): void => void (nowMs += ms),
    /** What a terminal of these columns shows at the end, line by line. */
    screen: (): readonly string[] => shown(written.join(''), columns ?? 200),
  };
}

/** A terminal that knows carriage returns and line feeds and no escape sequence. */
function shown(text: string, columns: number): readonly string[] {
  const lines: string[][] = [[]];
  let column = 0;
  for (const character of text) {
    if (character === '\r') column = 0;
    else if (character === '\n') {
      lines.push([]);
      column = 0;
    } else {
      if (column >= columns) {
        lines.push([]);
        column = 0;
      }
      const line = lines.at(-1) ?? [];
      line[column] = character;
      column += 1;
    }
  }
  return lines.map((line) => line.join('').trimEnd());
}

const waiting: Job = { ...job, state: 'running', phase: 'waiting', waits_until: new Date(START_MS + 43_000).toISOString() };

describe('in a terminal', () => {
  it('draws one line over and over', () => {
    const progress = progressOf(120);
    progress.show(runningJob);
    expect(progress.screen()).toEqual([
      '25 %  [######------------------]  1,000 objects  25,000/s  0 s left  missing 6  stale 4  phantom 2',
    ]);
    progress.show({ ...runningJob, progress: 1, objects_per_s: 7, counts: undefined });
    expect(progress.screen()).toEqual(['comparing  [########################]']);
    progress.end();
    expect(progress.screen()).toEqual(['']);
  });

  it.each([200, 80, 60, 40, 20, 10, 4, 2, 1, 0])('never writes beyond %i columns, nor into the last one', (columns) => {
    const progress = progressOf(columns);
    for (const each of [job, waiting, runningJob, { ...runningJob, progress: 0.999, objects_per_s: 1_234_567 }]) {
      progress.show(each);
      expect(progress.screen()).toHaveLength(1);
      expect((progress.screen()[0] ?? '').length).toBeLessThanOrEqual(Math.max(0, columns - 1));
    }
  });

  it('puts a line that stays above what is drawn over', () => {
    const progress = progressOf(80);
    progress.show(runningJob);
    progress.say('registry.unreachable; the command keeps trying');
    progress.show(job);
    expect(progress.screen()).toEqual(['registry.unreachable; the command keeps trying', 'queued']);
  });
});

describe('elsewhere', () => {
  it('writes a line at each change of state, else one every ten seconds', () => {
    const progress = progressOf();
    progress.show(job);
    for (let step = 1; step <= 25; step += 1) {
      progress.wait(1_000);
      progress.show({ ...runningJob, progress: step / 100 });
    }
    progress.show({ ...runningJob, state: 'paused' });
    progress.end();
    expect(progress.screen().map((line) => line.split(',')[0])).toEqual([
      'job-1: queued',
      'job-1: 1 %',
      'job-1: 11 %',
      'job-1: 21 %',
      'job-1: paused',
      '',
    ]);
  });
});
