/** `tally jobs` and `tally reindex`: jobs at the command line. */
import { type Command, Option } from 'commander';
import { shellWord } from '../domain/commands.ts';
import { defined } from '../domain/defined.ts';
import type { Context, Operations } from '../api/contract.ts';
import { type Job, type JobChange, differenceKinds, type DifferenceKind, type JobCounts, type ReindexRequest } from '../api/jobs.ts';
import { allowDeletesOption, type PageOptions, printing, listing, printPage } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { printable } from '../domain/printable.ts';
import { hasEnded, jobModes } from '../domain/reindex/job.ts';
import { RequestError } from '../domain/request-error.ts';
import { exitCodes } from './exit-codes.ts';
import { fieldsText, tableText, type Cell } from './output.ts';
import { ageOfText, countText, dollarsText, percentText, sizeText } from '../domain/texts.ts';
import { messageOf } from './errors.ts';
import { stageOf, type Progress } from './progress.ts';
import { faults, isFaultCode } from '../domain/fault.ts';

interface JobsOptions extends JsonOption, PageOptions {}

const ID = 'job-0mk3x1a2b-0123456789ab';

/** `tally jobs [ID]` and `tally jobs cancel|pause|resume ID`. */
export function addJobsCommand(program: Command, cli: Cli): void {
  const jobs = addJobs(program, cli);
  addJobCommand(jobs, cli, {
    name: 'cancel',
    summary: 'cancel a job',
    description: 'Cancels a job that has not ended. What it has written stays.',
    state: 'cancelled',
  });
  addJobCommand(jobs, cli, {
    name: 'pause',
    summary: 'pause a job',
    description:
      'Pauses a job that is queued or running. It stops after the page that it is comparing, and continues from there when it is resumed.',
    state: 'paused',
  });
  const resume = addJobCommand(jobs, cli, {
    name: 'resume',
    summary: 'resume a paused job',
    description: 'Resumes a paused job. A job that its deletion limit holds needs --allow-deletes.',
    state: 'running',
  });
  resume.addOption(allowDeletesOption('let the job delete up to <n> documents in all, those included that it has deleted already'));
}

function addJobs(program: Command, cli: Cli): Command {
  const jobs = program
    .command('jobs')
    .summary('list, show, cancel, pause and resume re-index jobs')
    .description('Lists re-index jobs, the oldest first, or shows one job.')
    .argument('[id]', 'show only this job');
  return listing(jobs, 'tally jobs', `tally jobs ${ID}`, `tally jobs cancel ${ID}`).action(
    async (id: string | undefined, options: JobsOptions) => {
      await (id === undefined ? list(cli, options) : show(cli, id, options));
    },
  );
}

interface JobCommand {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly state: JobChange['state'];
}

function addJobCommand(jobs: Command, cli: Cli, { name, summary, description, state }: JobCommand): Command {
  const command = jobs.command(name).summary(summary).description(description).argument('<id>', 'the job');
  return printing(command, `tally jobs ${name} ${ID}`).action(async (id: string, _: JsonOption, self: Command) => {
    // `tally jobs` has --json too, and commander assigns it to that command wherever it stands
    const { json, allow_deletes }: JsonOption & { readonly allow_deletes?: number } = self.optsWithGlobals();
    const body = state === 'running' ? { state, ...defined({ allow_deletes }) } : { state };
    const job = await cli.withControl((control, context) => control.changeJob({ params: { id }, body }, context));
    cli.print({ json }, job, () => jobText(job));
  });
}

async function list(cli: Cli, options: JobsOptions): Promise<void> {
  const { json, ...query } = options;
  const page = await cli.withControl((control, context) => control.listJobs({ query }, context));
  printPage(cli, { json }, page, { none: 'There are no jobs.', text: (items) => jobsText(items, cli.nowMs()) });
}

async function show(cli: Cli, id: string, options: JsonOption): Promise<void> {
  const job = await cli.withControl((control, context) => control.getJob({ params: { id } }, context));
  cli.print(options, job, () => jobText(job));
  const advice = adviceText(job);
  if (advice !== undefined) cli.hint(options, advice);
}

interface ReindexOptions extends JsonOption, Partial<Omit<ReindexRequest, 'bucket'>> {
  readonly wait?: true;
}

/** `tally reindex BUCKET`: compares a bucket with its index and writes the differences. */
export function addReindexCommand(program: Command, cli: Cli): void {
  const reindex = program
    .command('reindex')
    .summary('compare a bucket with its index and write the differences')
    .description(
      'Starts a job that compares a bucket with its index and writes the differences. Searches work throughout, and the bucket is never written to.',
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin with this')
    .option('--fill', 'also write documents that lack an optional field, such as the storage class, or the enrichment of the bucket')
    .option('--now', 'do not wait for late events; such a job closes no gap')
    .addOption(new Option('--mode <mode>', 'apply: write the differences (default); report: only count them').choices(jobModes))
    .addOption(allowDeletesOption('let the job delete up to <n> documents in all, even where its deletion limit would stop it earlier'))
    .option('--wait', 'wait until the job has ended; the exit code is 0 if it is done');
  printing(reindex, 'tally reindex photos --prefix 2026/ --wait', 'tally reindex emptied-bucket --allow-deletes 20000').action(
    async (bucket: string, options: ReindexOptions) => {
      const { json: _, wait, ...body } = options;
      await cli.withControl(async (control, context) => {
        const job = await control.startReindex({ params: { bucket }, body }, context);
        if (wait !== true) {
          cli.print(options, job, () => `Job ${printable(job.id)} is queued.`);
          cli.hint(options, `To see its progress: tally jobs ${shellWord(job.id)}`);
          return;
        }
        cli.hint(options, `Job ${printable(job.id)} is queued.`);
        const ended = await waitForJob(cli, { control, context, job, options });
        if (ended === undefined) {
          cli.leave(options, leftText(job));
          return;
        }
        cli.print(options, ended, () => jobText(ended));
        const advice = adviceText(ended);
        if (advice !== undefined) cli.hint(options, advice);
        cli.endWith(exitCodeOf(ended));
      });
    },
  );
}

/** Waits for a job at the command line. The job continues when the command stops waiting. */

/** The job is read this often: a person sees each step, and each read costs a few requests to the state store. */
const LOOK_INTERVAL_MS = 2_000;
/** Errors after which no read can succeed: the job is gone, or its reader may not read it any more. */
const endings: ReadonlySet<string> = new Set(['job.not-found', 'authentication.failed', 'authorization.denied', 'session.required']);
/** A worker takes a job within seconds; after its worker died another one takes it within two minutes. */
const STALL_MS = { queued: 15_000, running: 240_000 } as const;
/** How long the job may be unreadable. A registry that restarts, or a store that fails over, is back within this time. */
const TROUBLE_MS = 120_000;

interface Wait {
  readonly control: Operations;
  readonly context: Context;
  readonly job: Job;
  readonly options: JsonOption;
}

/**
 * Shows the progress of the job until it has ended or its deletion limit waits for a decision. Returns the job as it is then, or
 * `undefined` after Ctrl-C. Rejects with the error that has kept the job from being read for two minutes.
 */
export async function waitForJob(cli: Cli, { control, context, job, options }: Wait): Promise<Job | undefined> {
  const progress = cli.progress(options);
  const look = (signal: AbortSignal) => control.getJob({ params: { id: job.id } }, { ...context, signal });
  try {
    return await cli.interruptible((signal) => follow({ cli, look, progress }, signal));
  } finally {
    progress.end();
  }
}

interface Follow {
  readonly cli: Cli;
  readonly look: (signal: AbortSignal) => Promise<Job>;
  readonly progress: Progress;
}

async function follow(parts: Follow, signal: AbortSignal): Promise<Job | undefined> {
  const { cli, progress } = parts;
  const read = createReader(parts);
  const stall = createStallWatch(cli, progress);
  while (!signal.aborted) {
    const job = await read(signal);
    if (signal.aborted) break;
    if (job !== undefined) {
      stall.look(job);
      progress.show(job);
      if (hasEnded(job) || isHeldByLimit(job)) return job;
    }
    await cli.clock.sleep(LOOK_INTERVAL_MS, signal).catch(() => undefined);
  }
  return undefined;
}

/** Creates the function that reads the job. While it cannot be read, the function prints the reason once and returns undefined; it throws what does not pass by waiting. */
function createReader({ cli: { clock }, look, progress }: Follow): (signal: AbortSignal) => Promise<Job | undefined> {
  let trouble: { readonly text: string; readonly sinceMs: number } | undefined;
  return async function read(signal) {
    try {
      const job = await look(signal);
      trouble = undefined;
      return job;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof RequestError && endings.has(error.code)) throw error;
      const text = messageOf(error);
      if (text !== trouble?.text) progress.say(printable(`${text}; the command keeps trying`));
      trouble = { text, sinceMs: trouble?.sinceMs ?? clock.monotonicMs() };
      if (clock.monotonicMs() - trouble.sinceMs >= TROUBLE_MS) throw error;
      return undefined;
    }
  };
}

/** Reports once that nothing changes. The usual reason is that no worker runs jobs. */
function createStallWatch({ clock }: Cli, progress: Progress): { look(job: Job): void } {
  let moved = { text: '', atMs: 0, isReported: false };
  return {
    look(job) {
      const { objects_per_s: _, ...rest } = job;
      const text = JSON.stringify(rest);
      if (text !== moved.text) moved = { text, atMs: clock.monotonicMs(), isReported: false };
      const limitMs = job.state === 'queued' ? STALL_MS.queued : STALL_MS.running;
      if (moved.isReported || job.state === 'paused' || clock.monotonicMs() - moved.atMs < limitMs) return;
      moved = { ...moved, isReported: true };
      progress.say(`${stallText(job, limitMs / 1_000)} ${WORKERS}`);
    },
  };
}

const WORKERS = 'Workers are `tally serve` processes with the role reindex: check that one runs, and its /readyz.';

function stallText(job: Job, seconds: number): string {
  if (job.state === 'queued') return `No worker has taken the job for ${seconds} s; it stays queued until one does.`;
  return `The job has made no progress for ${seconds} s (${stageOf(job)}).`;
}

function isHeldByLimit({ state, paused_because: reason }: Job): boolean {
  return state === 'paused' && reason === 'deletion-limit';
}

/** Returns the exit code for a job that the command waited for. */
export function exitCodeOf(job: Job): number {
  switch (job.state) {
    case 'done':
      return exitCodes.ok;
    case 'cancelled':
      return exitCodes.cancelled;
    case 'paused':
      return exitCodes.paused;
    case 'failed':
    case 'queued':
    case 'running':
      return exitCodes.failure;
  }
}

/** Returns what the user can do about a job for which the command stopped waiting. */
export function leftText({ id }: Job): string {
  return `The job continues. To see its progress: tally jobs ${shellWord(id)}\nTo cancel it: tally jobs cancel ${shellWord(id)}`;
}

/** Returns what the user can do about a job that its deletion limit holds, or that could not fill in what it was to; undefined for other jobs. */
function adviceText(job: Job): string | undefined {
  if (!isHeldByLimit(job)) return unfilledText(job);
  const { reserved = 0, waiting = 0 } = job.deletions ?? {};
  const isEmptied = job.counts?.listed === 0;
  return [
    `The deletion limit holds the job: ${countText(waiting, 'document')} ${waiting === 1 ? 'waits' : 'wait'} to be deleted, and ${countText(reserved)} were. Everything else is done.`,
    `${isEmptied ? 'The bucket is empty, and all its documents would be deleted. Check that this is intended' : 'Check that the bucket is as intended'}. Then either allow as many in all:`,
    `  tally jobs resume ${shellWord(job.id)} --allow-deletes ${reserved + waiting}`,
    'or keep the documents:',
    `  tally jobs cancel ${shellWord(job.id)}`,
  ].join('\n');
}

function unfilledText({ state, fill, counts, bucket }: Job): string | undefined {
  const { lacking_enrichment: unenriched = 0 } = counts ?? {};
  if (state !== 'done' || fill !== true || unenriched === 0) return undefined;
  return `S3 refused the HEAD or the tags of ${countText(unenriched, 'object')}, so they are not enriched. To see why: tally doctor ${shellWord(bucket)}`;
}

/** The name and the meaning of each kind. */
export const kindTexts: Readonly<Record<DifferenceKind | 'lacking_enrichment', { readonly name: string; readonly meaning: string }>> = {
  missing: { name: 'missing', meaning: 'in the bucket, not in the index' },
  stale: { name: 'stale', meaning: 'in both, but the index differs' },
  phantom: { name: 'phantom', meaning: 'in the index, not in the bucket' },
  lacking_optional_fields: { name: 'lacking fields', meaning: 'equal, but the index lacks an optional field: not drift' },
  lacking_enrichment: { name: 'not enriched', meaning: 'equal, but the index lacks enrichment: not drift' },
  in_flight: { name: 'in flight', meaning: 'changed while they were compared: not drift' },
};

/** Formats one job with all its fields. */
export function jobText(job: Job): string {
  return fieldsText({ ...identityOf(job), ...courseOf(job), ...countsOf(job), ...troubleOf(job) });
}

type Fields = Readonly<Record<string, Cell>>;

function identityOf({ id, bucket, prefix, mode, requested_by: requestedBy, fill, now, gap_ids: gapIds = [] }: Job): Fields {
  const wishes = [mode, ...(fill === true ? ['fill'] : []), ...(now === true ? ['now'] : [])];
  return {
    id,
    bucket,
    prefix: prefix === '' ? undefined : prefix,
    mode: wishes.join(', '),
    'requested by': requestedBy,
    closes: gapIds.length === 0 ? undefined : gapIds.join(' '),
  };
}

function courseOf(job: Job): Fields {
  const { cut, done, leased } = job.ranges;
  return {
    state: job.state === 'running' ? `running: ${stageOf(job)}` : stageOf(job),
    created: job.created_at,
    started: job.started_at,
    'waits until': job.phase === 'waiting' && job.state === 'running' ? job.waits_until : undefined,
    finished: job.finished_at,
    progress: percentText(job.progress),
    rate: job.objects_per_s === undefined ? undefined : `${countText(job.objects_per_s)} objects/s`,
    ranges: cut === 0 ? undefined : `${done} of ${cut} done, ${leased} in progress`,
    cursor: job.cursor,
    'covers changes before': job.covers_before,
  };
}

function countsOf({ counts, cost_usd: cost, examples }: Job): Fields {
  if (counts === undefined) return {};
  return {
    ...sizesOf(counts),
    equal: countText(counts.equal),
    ...Object.fromEntries(differenceKinds.map((kind) => [kindTexts[kind].name, countText(counts[kind])])),
    [kindTexts.lacking_enrichment.name]: counts.lacking_enrichment === 0 ? undefined : countText(counts.lacking_enrichment),
    written: countText(counts.written),
    deleted: countText(counts.tombstones),
    'held back': counts.held === 0 ? undefined : countText(counts.held),
    refused: counts.refused === 0 ? undefined : refusedText(counts.refused, examples?.refused),
    cost: costText(cost),
  };
}

/** Names the documents that the index refused, as far as they fit. The API has up to 100 of them. */
function refusedText(count: number, examples: NonNullable<Job['examples']>['refused'] = []): string {
  const [first, ...others] = examples.map(({ key, reason = 'no reason was given' }) => `${key} (${reason})`);
  if (first === undefined) return countText(count);
  return `${countText(count)}: ${first}${others.length === 0 ? '' : ', and others: --json names them'}`;
}

/** Formats how much was compared, and with how many requests. */
export function sizesOf(counts: JobCounts): Fields {
  return {
    listed: `${countText(counts.listed, 'object')}, ${sizeText(counts.bytes_listed) ?? ''}`,
    scanned: countText(counts.scanned, 'document'),
    requests: `${countText(counts.list_requests)} LIST, ${countText(counts.head_requests)} HEAD`,
  };
}

/** Formats the estimated price of the requests to S3. */
export function costText(usd: number | undefined): string | undefined {
  const text = dollarsText(usd);
  return text === undefined ? undefined : `${text} (estimate)`;
}

function troubleOf({ state, deletions, error, last_fault: lastFault }: Job): Fields {
  const fault = error ?? (state === 'done' ? undefined : lastFault);
  return {
    deletions: deletions === undefined ? undefined : deletionsText(deletions),
    [error === undefined ? 'last fault' : 'error']: fault === undefined ? undefined : `${fault.reason} (${fault.code})`,
    'in range': fault?.range,
    advice: fault === undefined || !isFaultCode(fault.code) ? undefined : faults[fault.code].advice,
  };
}

function deletionsText({ limit, reserved, waiting }: NonNullable<Job['deletions']>): string {
  const allowed = limit === undefined ? 'no limit' : `at most ${countText(limit, 'deletion')}`;
  return `${allowed}, ${countText(reserved)} reserved${waiting === 0 ? '' : `, ${countText(waiting)} waiting`}`;
}

/** What a job held back is not done, although the job is. */
function stateText({ state, counts }: Job): string {
  return state === 'done' && counts !== undefined && counts.held > 0 ? `done, ${countText(counts.held)} held` : state;
}

/** Formats jobs as a table with one line for each job. */
function jobsText(jobs: readonly Job[], nowMs: number): string {
  return tableText(
    ['ID', 'STATE', 'DONE', 'MODE', 'AGE', 'BUCKET', 'PREFIX'],
    jobs.map((job) => [
      job.id,
      stateText(job),
      percentText(job.progress),
      job.mode,
      ageOfText(job.created_at, nowMs),
      job.bucket,
      job.prefix === '' ? undefined : job.prefix,
    ]),
  );
}
