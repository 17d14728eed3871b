/** The progress of what a command waits for, in lines: one whenever its stage changes, and else one every ten seconds. */
import type { Job } from '../registry/contract/job.ts';
import { stageOf } from '../registry/contract/job-texts.ts';
import { countText, durationText, percentText } from '../base/texts.ts';

/** What is known now. */
interface Known {
  /** The most important first. */
  readonly facts: readonly string[];
  /** What stands before the facts. */
  readonly name?: string;
  /** A line is written at once when it changes. */
  readonly stage?: string;
}

export interface Progress {
  show(known: Known): void;
  /** Prints a line at once. */
  say(text: string): void;
}

interface ProgressParts {
  readonly write: (text: string) => unknown;
  readonly nowMs: () => number;
  /** Set with --json: it prints only what needs attention. */
  readonly isSilent: boolean;
}

/** Lines end up in logs, and a person who waits needs no more of them. */
const LINE_INTERVAL_MS = 10_000;

export function createProgress({ write, nowMs, isSilent }: ProgressParts): Progress {
  let said: { readonly text: string; readonly stage?: string | undefined; readonly atMs: number } = { text: '', atMs: -Infinity };
  return {
    show({ name, facts, stage }) {
      const text = `${name === undefined ? '' : `${name}: `}${facts.join(', ')}`;
      if (isSilent || text === said.text || (stage === said.stage && nowMs() - said.atMs < LINE_INTERVAL_MS)) return;
      write(`${text}\n`);
      said = { text, stage, atMs: nowMs() };
    },
    say: (text) => void write(`${text}\n`),
  };
}

/** How many of several buckets are done. */
export function countsKnown({ done, failed, all }: { readonly done: number; readonly failed: number; readonly all: number }): Known {
  const failures = failed === 0 ? '' : `, ${countText(failed)} failed`;
  return { facts: [`${countText(done)} of ${countText(all)} buckets${failures}`] };
}

/** How far a job is. */
export function jobKnown(job: Job, nowMs: number): Known {
  return { facts: factsOf(job, nowMs), name: job.id, stage: stageOf(job) };
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
