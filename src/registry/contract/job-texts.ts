/** The texts that people read about a job. */
import { shellWord } from '../../base/commands.ts';
import { faults, isFaultCode } from '../../base/fault.ts';
import { countText, dollarsText, percentText, sizeText } from '../../base/texts.ts';
import { expiredText, differenceKinds, type ExampleKind } from '../../records/comparison.ts';
import { columnsOf } from './command.ts';
import type { Job, JobCounts } from './job.ts';
import { heldBack } from './job-state.ts';

/** What a job is doing now. Changes show immediately. */
export function stageOf({ state, phase }: Job): string {
  if (state === 'running') return phase === 'waiting' ? 'waiting for late events' : 'comparing';
  return state;
}

/** What a person can do about the deletions that a job held back, or about what it could not fill in. */
export function jobAdvice(job: Job): readonly string[] {
  const held = heldBack(job);
  if (held === 0) return unfilledText(job);
  const isEmptied = job.counts?.listed === 0;
  return [
    `The deletion limit holds back ${countText(held, 'deletion')}. ${job.state === 'done' ? 'Everything else is done' : 'Not everything is compared yet'}.`,
    `${isEmptied ? 'The bucket is empty, so all of its documents would be deleted. Check that this is intended' : 'Check that the bucket is as intended'}. Then either allow them:`,
    `  \`tally jobs allow ${shellWord(job.id)}\``,
    'or keep the documents:',
    `  \`tally jobs decline ${shellWord(job.id)}\``,
  ];
}

function unfilledText({ state, fill, counts, bucket }: Job): readonly string[] {
  const { unenriched = 0 } = counts ?? {};
  if (state !== 'done' || fill !== true || unenriched === 0) return [];
  return [
    `S3 refused the HEAD or the tags of ${countText(unenriched, 'object')}, so they are not enriched. To see why: \`tally doctor ${shellWord(bucket)}\``,
  ];
}

/** The kinds as people read them. Only the first three are drift. */
export const kindNames: Readonly<Record<ExampleKind, string>> = {
  missing: 'missing',
  stale: 'stale',
  phantom: 'phantom',
  incomplete: 'lacking fields',
  unenriched: 'not enriched',
  in_flight: 'in flight',
  refused: 'refused',
};

/** A column for a count, once it is above zero. */
const counted = (text: (counts: JobCounts, job: Job) => string | undefined) => (job: Job) => job.counts && text(job.counts, job);

/** What a job found and did. A report writes nothing. */
export const countColumns = columnsOf<Job>({
  listed: counted(({ listed, bytes_listed: bytes }) => `${countText(listed, 'object')}, ${sizeText(bytes) ?? ''}`),
  scanned: counted(({ scanned }) => countText(scanned, 'document')),
  requests: counted((counts) => `${countText(counts.list_requests)} LIST, ${countText(counts.head_requests)} HEAD`),
  equal: counted(({ equal }) => countText(equal)),
  ...Object.fromEntries(differenceKinds.map((kind) => [kindNames[kind], counted((counts) => countText(counts[kind]))])),
  [kindNames.unenriched]: counted(({ unenriched: count }) => (count === 0 ? undefined : countText(count))),
  written: counted(({ written }, { mode }) => (mode === 'apply' ? countText(written) : undefined)),
  deleted: counted(({ tombstones }, { mode }) => (mode === 'apply' ? countText(tombstones) : undefined)),
  'held back': counted(({ held }, { waiting }) => (held === 0 ? undefined : `${countText(held)} (${waitingText(waiting)})`)),
  refused: counted(({ refused }, { examples }) => (refused === 0 ? undefined : refusedText(refused, examples?.refused))),
  overdue: ({ overdue }) => overdue?.expired && expiredText(overdue.expired),
  uploads: ({ overdue }) => overdue?.uploads && uploadsText(overdue.uploads),
  cost: ({ cost_usd: usd }) => (usd === undefined ? undefined : `${dollarsText(usd)} (estimate)`),
});

function uploadsText({ count, is_more: isMore, oldest_at: oldest }: NonNullable<NonNullable<Job['overdue']>['uploads']>): string {
  return `${countText(count)}${isMore ? ' or more' : ''} unfinished, the oldest since ${oldest}`;
}

/** One job with all its fields. */
export const jobFields = columnsOf<Job>({
  id: 'id',
  bucket: 'bucket',
  prefix: ({ prefix }) => (prefix === '' ? undefined : prefix),
  mode: ({ mode, fill, now }) => [mode, ...(fill === true ? ['fill'] : []), ...(now === true ? ['now'] : [])].join(', '),
  'requested by': 'requested_by',
  state: (job) => (job.state === 'running' ? `running: ${stageOf(job)}` : job.state),
  created: 'created_at',
  started: 'started_at',
  'waits until': ({ phase, state, waits_until: until }) => (phase === 'waiting' && state === 'running' ? until : undefined),
  finished: 'finished_at',
  progress: ({ progress }) => percentText(progress),
  rate: ({ objects_per_s: rate }) => (rate === undefined ? undefined : `${countText(rate)} objects/s`),
  'covers changes before': 'covers_before',
  ...countColumns,
  error: ({ error }) => error && faultText(error),
  'last fault': ({ last_fault: fault }) => fault && faultText(fault),
  'after the key': (job) => faultOf(job)?.after,
  advice: (job) => adviceText(faultOf(job)?.code),
});

function faultOf({ error, last_fault: fault }: Job): Job['error'] {
  return error ?? fault;
}

function faultText({ reason, code }: NonNullable<Job['error']>): string {
  return `${reason} (${code})`;
}

function adviceText(code = ''): string | undefined {
  return isFaultCode(code) ? faults[code].advice : undefined;
}

/** What happened to the deletions that a job held back. */
function waitingText(waiting: Job['waiting']): string {
  if (waiting === undefined) return 'none waiting';
  const { deletions, declined_at: declined } = waiting;
  return declined === undefined
    ? `${countText(deletions)} ${deletions === 1 ? 'waits' : 'wait'} for you`
    : `you declined them at ${declined}`;
}

/** Names the documents that the index refused, as far as they fit. The API has up to 20 of them. */
function refusedText(count: number, examples: NonNullable<Job['examples']>['refused'] = []): string {
  const [first, ...others] = examples.map(({ key, reason = 'no reason was given' }) => `${key} (${reason})`);
  if (first === undefined) return countText(count);
  return `${countText(count)}: ${first}${others.length === 0 ? '' : ', and others: --json names them'}`;
}

/** A job may be done although the deletions that it held back aren't. */
export function stateText(job: Job): string {
  const held = heldBack(job);
  return held > 0 ? `${job.state}, ${countText(held)} held` : job.state;
}
