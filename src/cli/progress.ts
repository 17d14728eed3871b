/** The progress of what a command waits for. It is plain ASCII without colours, which every terminal shows. */
import type { Job } from '../api/job.ts';
import { stageOf } from '../api/job-texts.ts';
import { countText, durationText, percentText } from '../domain/texts.ts';

export interface Progress {
  show(job: Job): void;
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
}

/** The interval of lines. They end up in logs, where one every ten seconds is enough. */
const LINE_INTERVAL_MS = 10_000;
/** The width of the bar: wide enough to show progress, and at most half of a narrow terminal. */
const BAR_WIDTH = 24;

/** Creates the progress of a command with --json. It prints only what needs attention, on stderr. */
export function createSilentProgress({ write }: Pick<ProgressParts, 'write'>): Progress {
  return { show: () => undefined, say: (text) => void write(`${text}\n`), end: () => undefined };
}

/** Creates the progress. A terminal shows one line that is redrawn; elsewhere a line is written at each change of state and every 10 s. */
export function createProgress(parts: ProgressParts): Progress {
  return parts.terminal === undefined ? createLines(parts) : createBar(parts, parts.terminal);
}

/** How many of several things are done. */
export interface Counts {
  readonly done: number;
  readonly failed: number;
  readonly all: number;
}

export interface Counting {
  show(counts: Counts): void;
  /** Clears the redrawn line. */
  end(): void;
}

/** Creates the progress of a command about several buckets: one line that is redrawn, or elsewhere a line every 10 s. */
export function createCounting({ write, nowMs, terminal }: ProgressParts): Counting {
  let saidMs = nowMs();
  const line = terminal && createLine(write, terminal);
  return {
    show(counts) {
      const { done, all, failed } = counts;
      const text = `${countText(done)} of ${countText(all)} buckets${failed === 0 ? '' : `, ${countText(failed)} failed`}`;
      if (line !== undefined) line.draw((columns) => fitting(text, [drawnBar(all === 0 ? 1 : done / all)], columns));
      else if (nowMs() - saidMs >= LINE_INTERVAL_MS) {
        saidMs = nowMs();
        write(`${text}\n`);
      }
    },
    end: () => line?.clear(),
  };
}

/** A line of the terminal that is redrawn. */
function createLine(write: ProgressParts['write'], terminal: { columns(): number }) {
  let drawn = 0;
  return {
    draw(textFor: (columns: number) => string): void {
      // the last column stays free: some terminals begin a new line there
      const columns = terminal.columns() - 1;
      const text = textFor(columns);
      // the terminal may have become narrower
      write(`\r${text.padEnd(Math.min(drawn, columns))}`);
      drawn = text.length;
    },
    clear(): void {
      // spaces, because not every terminal knows escape sequences
      if (drawn > 0) write(`\r${' '.repeat(drawn)}\r`);
      drawn = 0;
    },
  };
}

function drawnBar(share: number): string {
  return `[${'#'.repeat(Math.floor(Math.min(1, share) * BAR_WIDTH)).padEnd(BAR_WIDTH, '-')}]`;
}

/** The first fact, and as many others as fit on the line. */
function fitting(first: string, others: readonly string[], columns: number): string {
  let text = first.slice(0, Math.max(0, columns));
  for (const fact of others) {
    if (text.length + 2 + fact.length > columns) break;
    text += `  ${fact}`;
  }
  return text;
}

function createBar({ write, nowMs }: ProgressParts, terminal: { columns(): number }): Progress {
  const line = createLine(write, terminal);
  return {
    show(job) {
      line.draw((columns) => barText(job, { nowMs: nowMs(), columns }));
    },
    say(text) {
      line.clear();
      write(`${text}\n`);
    },
    end: () => line.clear(),
  };
}

function createLines({ write, nowMs }: ProgressParts): Progress {
  let said = { text: '', stage: '', atMs: Number.NEGATIVE_INFINITY };
  return {
    show(job) {
      const stage = stageOf(job);
      const text = `${job.id}: ${factsOf(job, nowMs()).join(', ')}`;
      const isDue = stage !== said.stage || nowMs() - said.atMs >= LINE_INTERVAL_MS;
      if (!isDue || text === said.text) return;
      write(`${text}\n`);
      said = { text, stage, atMs: nowMs() };
    },
    say: (text) => void write(`${text}\n`),
    end: () => undefined,
  };
}

/** Returns the bar, if the progress is known, and then as many facts as fit on the line. */
function barText(job: Job, { nowMs, columns }: { readonly nowMs: number; readonly columns: number }): string {
  const { progress } = job;
  const bar = progress === undefined ? [] : [drawnBar(progress)];
  const [first = '', ...facts] = factsOf(job, nowMs);
  // the percentage or the stage comes before the bar
  return fitting(first, [...bar, ...facts], columns);
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

function speedFacts({ counts, progress, objects_per_s: rate }: Job): readonly string[] {
  if (rate === undefined || rate <= 0) return [];
  const speed = `${countText(rate)}/s`;
  // before 1 % is done, an estimate is only a guess
  if (counts === undefined || progress === undefined || progress < 0.01 || progress >= 1) return [speed];
  const leftMs = ((counts.listed / progress) * (1 - progress) * 1_000) / rate;
  return [speed, `${durationText(leftMs)} left`];
}
