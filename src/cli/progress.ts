/** The progress of what a command waits for. It is plain ASCII without colours, which every terminal shows. */
import type { Job } from '../registry/contract/job.ts';
import { leftMs } from '../registry/contract/job-state.ts';
import { stageOf } from '../registry/contract/job-texts.ts';
import { countText, durationText, percentText } from '../base/texts.ts';

/** What is known now. */
interface Known {
  /** The most important first: the line has as many as fit, and always the first. */
  readonly facts: readonly string[];
  /** 0 to 1: what a bar after the first fact shows. */
  readonly share?: number | undefined;
  /** What stands before the facts where lines are written. */
  readonly name?: string;
  /** A line is written at once when it changes. */
  readonly stage?: string;
}

export interface Progress {
  show(known: Known): void;
  /** Prints a line that stays. */
  say(text: string): void;
  /** Clears the redrawn line. */
  end(): void;
}

interface ProgressParts {
  readonly write: (text: string) => unknown;
  readonly nowMs: () => number;
  /** The terminal on which a line is redrawn. If absent, whole lines are written. */
  readonly terminal?: { columns(): number } | undefined;
  /** Set with --json: it prints only what needs attention. */
  readonly isSilent: boolean;
}

/** The interval of lines. They end up in logs, where one every ten seconds is enough. */
const LINE_INTERVAL_MS = 10_000;
/** The width of the bar: wide enough to show progress, and at most half of a narrow terminal. */
const BAR_WIDTH = 24;

/** Creates the progress. A terminal shows one line that is redrawn; elsewhere a line is written at each change of the stage, and every 10 s. */
export function createProgress({ write, nowMs, terminal, isSilent }: ProgressParts): Progress {
  let drawn = 0;
  let said: { readonly text: string; readonly stage?: string | undefined; readonly atMs: number } = { text: '', atMs: -Infinity };

  function draw(known: Known, columns: number): void {
    const text = fitting(known, columns);
    // the terminal may have become narrower
    write(`\r${text.padEnd(Math.min(drawn, columns))}`);
    drawn = text.length;
  }

  function clear(): void {
    // spaces, because not every terminal knows escape sequences
    if (drawn > 0) write(`\r${' '.repeat(drawn)}\r`);
    drawn = 0;
  }

  function writeLine({ name, facts, stage }: Known): void {
    const text = `${name === undefined ? '' : `${name}: `}${facts.join(', ')}`;
    if (text === said.text || (stage === said.stage && nowMs() - said.atMs < LINE_INTERVAL_MS)) return;
    write(`${text}\n`);
    said = { text, stage, atMs: nowMs() };
  }

  return {
    show(known) {
      if (isSilent) return;
      // the last column stays free: some terminals begin a new line there
      if (terminal === undefined) writeLine(known);
      else draw(known, terminal.columns() - 1);
    },
    say(text) {
      clear();
      write(`${text}\n`);
    },
    end: clear,
  };
}

/** The first fact, the bar, and as many other facts as fit on the line. */
function fitting({ facts: [first = '', ...others], share }: Known, columns: number): string {
  const bar = share === undefined ? [] : [`[${'#'.repeat(Math.floor(Math.min(1, share) * BAR_WIDTH)).padEnd(BAR_WIDTH, '-')}]`];
  let text = first.slice(0, Math.max(0, columns));
  for (const fact of [...bar, ...others]) {
    if (text.length + 2 + fact.length > columns) break;
    text += `  ${fact}`;
  }
  return text;
}

/** How many of several buckets are done. */
export function countsKnown({ done, failed, all }: { readonly done: number; readonly failed: number; readonly all: number }): Known {
  const failures = failed === 0 ? '' : `, ${countText(failed)} failed`;
  return { facts: [`${countText(done)} of ${countText(all)} buckets${failures}`], share: all === 0 ? 1 : done / all };
}

/** How far a job is. */
export function jobKnown(job: Job, nowMs: number): Known {
  return { facts: factsOf(job, nowMs), share: job.progress, name: job.id, stage: stageOf(job) };
}

/** Returns facts about the job, the most important first. */
function factsOf(job: Job, nowMs: number): readonly string[] {
  const stage = stageOf(job);
  if (stage === 'waiting for late events') {
    return [stage, ...(job.waits_until === undefined ? [] : [`${durationText(Date.parse(job.waits_until) - nowMs)} left`])];
  }
  const { counts, progress } = job;
  if (counts === undefined) return [stage];
  const share = stage === 'comparing' ? percentText(progress) : undefined;
  return [
    share ?? stage,
    countText(counts.listed, 'object'),
    ...(stage === 'comparing' ? speedFacts(job) : []),
    ...(['missing', 'stale', 'phantom'] as const).filter((kind) => counts[kind] > 0).map((kind) => `${kind} ${countText(counts[kind])}`),
  ];
}

function speedFacts(job: Job): readonly string[] {
  const { objects_per_s: rate } = job;
  const left = leftMs(job);
  if (rate === undefined || rate <= 0) return [];
  return [`${countText(rate)}/s`, ...(left === undefined ? [] : [`${durationText(left)} left`])];
}
