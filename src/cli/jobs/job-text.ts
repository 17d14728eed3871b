/** Formats jobs for people. */
import { differenceKinds, type DifferenceKind, type Job, type JobCounts } from '../../api/jobs.ts';
import { faults, isFaultCode } from '../../domain/fault.ts';
import type { Cli } from '../cli.ts';
import { ageOfText, countText, dollarsText, percentText, sizeText } from '../human.ts';
import { fieldsText, tableText, type Cell } from '../output.ts';
import { stageOf } from '../progress.ts';

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
export function jobText(job: Job, cli: Pick<Cli, 'shown'>): string {
  return fieldsText({ ...identityOf(job), ...courseOf(job), ...countsOf(job), ...troubleOf(job, cli) });
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
    listed: `${countText(counts.listed)} objects, ${sizeText(counts.bytes_listed) ?? ''}`,
    scanned: `${countText(counts.scanned)} documents`,
    requests: `${countText(counts.list_requests)} LIST, ${countText(counts.head_requests)} HEAD`,
  };
}

/** Formats the estimated price of the requests to S3. */
export function costText(usd: number | undefined): string | undefined {
  const text = dollarsText(usd);
  return text === undefined ? undefined : `${text} (estimate)`;
}

function troubleOf({ state, deletions, error, last_fault: lastFault }: Job, { shown }: Pick<Cli, 'shown'>): Fields {
  const fault = error ?? (state === 'done' ? undefined : lastFault);
  return {
    deletions: deletions === undefined ? undefined : deletionsText(deletions),
    [error === undefined ? 'last fault' : 'error']: fault === undefined ? undefined : `${fault.reason} (${fault.code})`,
    'in range': fault?.range,
    advice: fault === undefined || !isFaultCode(fault.code) ? undefined : shown(faults[fault.code].advice),
  };
}

function deletionsText({ limit, reserved, waiting }: NonNullable<Job['deletions']>): string {
  const allowed = limit === undefined ? 'no limit' : `at most ${countText(limit)} deletions`;
  return `${allowed}, ${countText(reserved)} reserved${waiting === 0 ? '' : `, ${countText(waiting)} waiting`}`;
}

/** Formats jobs as a table with one line for each job. */
export function jobsText(jobs: readonly Job[], nowMs: number): string {
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

/** What a job held back is not done, although the job is. */
function stateText({ state, counts }: Job): string {
  return state === 'done' && counts !== undefined && counts.held > 0 ? `done, ${countText(counts.held)} held` : state;
}
