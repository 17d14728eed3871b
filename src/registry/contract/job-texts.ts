/** What people read of a job. */
import { shellWord } from '../../base/commands.ts';
import { faults, isFaultCode } from '../../base/fault.ts';
import { countText, dollarsText, percentText, sizeText } from '../../base/texts.ts';
import type { Cells } from './command.ts';
import { differenceKinds, type ExampleKind, type Job, type JobCounts } from './job.ts';

/** Returns what a job does now. A change is shown immediately. */
export function stageOf({ state, phase }: Job): string {
  if (state === 'running') return phase === 'waiting' ? 'waiting for late events' : 'comparing';
  return state;
}

/** How many of the deletions that a job held back wait for a person who has not decided about them. */
export function heldBack({ waiting }: Job): number {
  return waiting === undefined || waiting.declined_at !== undefined ? 0 : waiting.deletions;
}

/** Returns what the user can do about the deletions that a job held back, or about what it could not fill in. */
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
  const { lacking_enrichment: unenriched = 0 } = counts ?? {};
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
  lacking_optional_fields: 'lacking fields',
  lacking_enrichment: 'not enriched',
  in_flight: 'in flight',
  refused: 'refused',
};

/** One job with all its fields. */
export function jobFields(job: Job): Cells {
  return { ...identityOf(job), ...courseOf(job), ...countFields(job), ...troubleOf(job) };
}

function identityOf({ id, bucket, prefix, mode, requested_by: requestedBy, fill, now }: Job): Cells {
  const wishes = [mode, ...(fill === true ? ['fill'] : []), ...(now === true ? ['now'] : [])];
  return {
    id,
    bucket,
    prefix: prefix === '' ? undefined : prefix,
    mode: wishes.join(', '),
    'requested by': requestedBy,
  };
}

function courseOf(job: Job): Cells {
  return {
    state: job.state === 'running' ? `running: ${stageOf(job)}` : stageOf(job),
    created: job.created_at,
    started: job.started_at,
    'waits until': job.phase === 'waiting' && job.state === 'running' ? job.waits_until : undefined,
    finished: job.finished_at,
    progress: percentText(job.progress),
    rate: job.objects_per_s === undefined ? undefined : `${countText(job.objects_per_s)} objects/s`,
    cursor: job.cursor,
    'covers changes before': job.covers_before,
  };
}

/** What it found and did; a report writes nothing. */
export function countFields({ mode, counts, cost_usd: cost, examples, waiting }: Job): Cells {
  if (counts === undefined) return {};
  return {
    ...sizesOf(counts),
    equal: countText(counts.equal),
    ...Object.fromEntries(differenceKinds.map((kind) => [kindNames[kind], countText(counts[kind])])),
    [kindNames.lacking_enrichment]: counts.lacking_enrichment === 0 ? undefined : countText(counts.lacking_enrichment),
    ...(mode === 'apply' && { written: countText(counts.written), deleted: countText(counts.tombstones) }),
    'held back': counts.held === 0 ? undefined : `${countText(counts.held)} (${waitingText(waiting)})`,
    refused: counts.refused === 0 ? undefined : refusedText(counts.refused, examples?.refused),
    cost: costText(cost),
  };
}

/** What became of the deletions that a job held back. */
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

/** Formats how much was compared, and with how many requests. */
function sizesOf(counts: JobCounts): Cells {
  return {
    listed: `${countText(counts.listed, 'object')}, ${sizeText(counts.bytes_listed) ?? ''}`,
    scanned: countText(counts.scanned, 'document'),
    requests: `${countText(counts.list_requests)} LIST, ${countText(counts.head_requests)} HEAD`,
  };
}

/** Formats the estimated price of the requests to S3. */
function costText(usd: number | undefined): string | undefined {
  const text = dollarsText(usd);
  return text === undefined ? undefined : `${text} (estimate)`;
}

function troubleOf({ state, deletions, error, last_fault: lastFault }: Job): Cells {
  const fault = error ?? (state === 'done' ? undefined : lastFault);
  return {
    deletions: deletions === undefined ? undefined : deletionsText(deletions),
    [error === undefined ? 'last fault' : 'error']: fault === undefined ? undefined : `${fault.reason} (${fault.code})`,
    'after the key': fault?.after,
    advice: fault === undefined || !isFaultCode(fault.code) ? undefined : faults[fault.code].advice,
  };
}

function deletionsText({ limit, reserved }: NonNullable<Job['deletions']>): string {
  return `${limit === undefined ? 'no limit' : `at most ${countText(limit, 'deletion')}`}, ${countText(reserved)} reserved`;
}

/** What a job held back is not done, although the job is. */
export function stateText(job: Job): string {
  const held = heldBack(job);
  return held > 0 ? `${job.state}, ${countText(held)} held` : job.state;
}
