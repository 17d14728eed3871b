/** The metrics of re-index, part of the one table. */
import { faults } from '../../domain/fault.ts';
import { jobModes, jobStates } from '../../domain/reindex/job.ts';
import { taskResults } from '../../pipeline/ports/telemetry.ts';

/** As the counts of a job are named, and as they are labelled. */
export const objectKinds = [
  ['equal', 'equal'],
  ['incomplete', 'incomplete'],
  ['missing', 'missing'],
  ['stale', 'stale'],
  ['phantom', 'phantom'],
  ['inFlight', 'in-flight'],
] as const;
const turnResults = ['on', 'done', 'braked', 'lost', ...Object.keys(faults)];
/** Those that end a job. */
const endStates = jobStates.filter((state) => state === 'done' || state === 'failed' || state === 'cancelled');

export const reindexMetrics = {
  tally_reindex_objects_total: {
    type: 'counter',
    unit: 'objects',
    labels: { mode: jobModes, kind: objectKinds.map(([, kind]) => kind) },
    help: 'Keys compared by re-index jobs and reports, by what was found.',
    alert: '',
  },
  tally_reindex_writes_total: {
    type: 'counter',
    unit: 'documents',
    labels: { kind: ['document', 'tombstone'] },
    help: 'Documents that re-index jobs wrote.',
    alert: '',
  },
  tally_reindex_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: { request: ['list', 'head'] },
    help: 'Requests to S3 made by turns of re-index jobs.',
    alert: '',
  },
  tally_reindex_turns_total: {
    type: 'counter',
    unit: 'turns',
    labels: { result: turnResults },
    help: 'Turns of ranges ended: on (more is to do), done, braked, lost to another worker, or by fault.',
    alert: 'rate of a result that is a fault > 0 for 30 min',
  },
  tally_reindex_tasks_total: {
    type: 'counter',
    unit: 'messages',
    labels: { result: taskResults },
    help: 'Tasks of ranges received from the work queue: taken, or why not; invalid ones are no tasks and were deleted.',
    alert: 'result="invalid" increases',
  },
  tally_reindex_splits_total: {
    type: 'counter',
    unit: 'splits',
    labels: { result: ['split', 'none'] },
    help: 'Attempts to split a range because a place was free.',
    alert: '',
  },
  tally_reindex_ranges: {
    type: 'gauge',
    unit: 'ranges',
    labels: {},
    help: 'Ranges being compared by this process.',
    alert: '',
  },
  tally_jobs_ended_total: {
    type: 'counter',
    unit: 'jobs',
    labels: { state: endStates },
    help: 'Re-index jobs that this process saw end, by how.',
    alert: '',
  },
} as const;
