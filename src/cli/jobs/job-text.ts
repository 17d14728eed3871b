/** Jobs as people read them. */
import { differenceKinds, type DifferenceKind, type ReconcileCounts } from '../../domain/reindex/counts.ts';
import { faults } from '../../domain/fault.ts';
import type { JobView } from '../../domain/reindex/job-view.ts';
import { ageText, countText, dollarsText, percentText, sizeText } from '../human.ts';
import { fieldsText, tableText, timeText, type Cell } from '../output.ts';
import { stageOf } from './progress.ts';

/** How a kind is called, and what it means. */
export const kindTexts: Readonly<Record<DifferenceKind, { readonly name: string; readonly meaning: string }>> = {
  missing: { name: 'missing', meaning: 'in the bucket, not in the index' },
  stale: { name: 'stale', meaning: 'in both, but the index says something else' },
  phantom: { name: 'phantom', meaning: 'in the index, not in the bucket' },
  incomplete: { name: 'incomplete', meaning: 'equal, but the index lacks a field: no drift' },
  inFlight: { name: 'in flight', meaning: 'changed while it was looked at: no drift' },
};

/** One job, all that is known of it. */
export function jobText(job: JobView): string {
  return fieldsText({ ...identityOf(job), ...courseOf(job), ...countsOf(job), ...troubleOf(job) });
}

type Fields = Readonly<Record<string, Cell>>;

function identityOf({ id, bucket, prefix, mode, requestedBy, fill, now, gapIds = [] }: JobView): Fields {
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

function courseOf(job: JobView): Fields {
  const { cut, done, leased } = job.ranges;
  return {
    state: job.state === 'running' ? `running: ${stageOf(job)}` : stageOf(job),
    created: timeText(job.createdAtMs),
    started: timeText(job.startedAtMs),
    'waits until': job.phase === 'waiting' && job.state === 'running' ? timeText(job.waitUntilMs) : undefined,
    finished: timeText(job.finishedAtMs),
    progress: percentText(job.progress),
    rate: job.objectsPerSecond === undefined ? undefined : `${countText(job.objectsPerSecond)} objects/s`,
    ranges: cut === 0 ? undefined : `${done} of ${cut} done, ${leased} at work`,
    cursor: job.cursor,
    'covers changes before': timeText(job.coversBeforeMs),
  };
}

function countsOf({ counts, costUsd }: JobView): Fields {
  if (counts === undefined) return {};
  return {
    ...sizesOf(counts),
    equal: countText(counts.equal),
    ...Object.fromEntries(differenceKinds.map((kind) => [kindTexts[kind].name, countText(counts[kind])])),
    written: countText(counts.written),
    deleted: countText(counts.tombstones),
    'held back': counts.held === 0 ? undefined : countText(counts.held),
    cost: costText(costUsd),
  };
}

/** How much was looked at, and by how many requests. */
export function sizesOf({ listed, bytesListed, scanned, listRequests, headRequests }: ReconcileCounts): Fields {
  return {
    listed: `${countText(listed)} objects, ${sizeText(bytesListed) ?? ''}`,
    scanned: `${countText(scanned)} documents`,
    requests: `${countText(listRequests)} LIST, ${countText(headRequests)} HEAD`,
  };
}

/** What S3 charges for the requests. */
export function costText(usd: number | undefined): string | undefined {
  const text = dollarsText(usd);
  return text === undefined ? undefined : `${text} (estimate)`;
}

function troubleOf({ state, brake, error, lastFault }: JobView): Fields {
  const fault = error ?? (state === 'done' ? undefined : lastFault);
  return {
    brake: brake === undefined ? undefined : brakeText(brake),
    [error === undefined ? 'last fault' : 'error']: fault === undefined ? undefined : `${fault.reason} (${fault.code})`,
    'in range': fault?.range,
    advice: fault === undefined ? undefined : faults[fault.code].advice,
  };
}

function brakeText({ limit, reserved, waiting }: NonNullable<JobView['brake']>): string {
  const allowed = limit === undefined ? 'no limit' : `at most ${countText(limit)} deletions`;
  return `${allowed}, ${countText(reserved)} reserved${waiting === 0 ? '' : `, ${countText(waiting)} waiting`}`;
}

/** Jobs, one a line. */
export function jobsText(jobs: readonly JobView[], nowMs: number): string {
  return tableText(
    ['ID', 'STATE', 'DONE', 'MODE', 'AGE', 'BUCKET', 'PREFIX'],
    jobs.map((job) => [
      job.id,
      job.state,
      percentText(job.progress),
      job.mode,
      ageText(job.createdAtMs, nowMs),
      job.bucket,
      job.prefix === '' ? undefined : job.prefix,
    ]),
  );
}
