/**
 * A registry with ten buckets and trouble, for pictures of the panel and for what takes long: a denied bucket, held deletions,
 * differences that a report found, running jobs, broken wiring, and one whose trouble of this morning is over. Everything is derived from the number of the bucket or the object, so that it is the
 * same each time; times count from the start of the process.
 */
import type { Bucket } from '../../../src/registry/contract/bucket.ts';
import type { CheckedOperations } from '../../../src/registry/contract/contract.ts';
import type { Diagnosis } from '../../../src/registry/contract/connections.ts';
import type { DeadLetter } from '../../../src/registry/contract/dead-letters.ts';
import type { Gap } from '../../../src/registry/contract/gaps.ts';
import type { Job } from '../../../src/registry/contract/job.ts';
import { zeroCounts } from '../../../src/registry/contract/job-view.ts';
import type { StoredObject } from '../../../src/registry/contract/search.ts';
import { groupClause, type UsageBy } from '../../../src/store/groups.rules.ts';
import { bucketAnswer, createFakeControl, gap, objectDocument, runningJob } from '../fakes/control.ts';

const startedMs = Date.now();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The moment so long before the start. */
const ago = (ms: number): string => new Date(startedMs - ms).toISOString();

const WHOLE = 'job-7f3k2m9q4x';
const HELD = 'job-2b8n5c1w7z';
const CLOSING = 'job-5s1e8r6p0u';

const healthy: Bucket = {
  ...bucketAnswer,
  account: '210987654321',
  enrich: 'head',
  status: { state: 'ok', severity: 'ok', sentence: 'No known difference; compared 2 days ago' },
  created_at: ago(90 * DAY_MS),
  created_by: 'alice@acme.example',
  last_event_at: ago(MINUTE_MS),
  last_compared_at: ago(2 * DAY_MS),
};

type Trouble = Partial<Bucket> & Pick<Bucket, 'bucket'>;
type Status = Bucket['status'];

const bad = (state: Status['state'], sinceMs: number, sentence: string, more: Partial<Status> = {}): Status => ({
  state,
  severity: 'bad',
  sentence,
  since: ago(sinceMs),
  ...more,
});
const missing = (sinceMs: number, why: string): Status =>
  bad('gap_open', sinceMs, `Changes may be missing (${why}): a re-index is repairing it`, { severity: 'warning' });
const doctor = (bucket: string) => ({ act: { kind: 'doctor', command: `tally doctor ${bucket}` } }) as const;

const brokenRule: Diagnosis['findings'] = [
  {
    code: 'connect.not-made',
    severity: 'broken',
    what: 'the rule tally-0a1b2c3d-acme-clickstream is missing',
    why: 'EventBridge sends no events of this bucket to Tally',
    fix: 'tally bucket add acme-clickstream',
    blocks: false,
  },
];

const troubles: readonly Trouble[] = [
  { bucket: 'acme-data-lake', status: missing(2 * HOUR_MS, 'messages expired in the queue') },
  {
    bucket: 'acme-partner-drop',
    status: bad('events_lost', 3 * HOUR_MS, 'Access denied: allow s3:ListBucket on acme-partner-drop', doctor('acme-partner-drop')),
    last_event_at: ago(3 * HOUR_MS),
  },
  {
    bucket: 'acme-invoices',
    status: bad('deletions_held', 5 * HOUR_MS, '1,035 deletions wait for you: look at the bucket, then allow or decline them', {
      act: { kind: 'jobs', command: `tally jobs ${HELD}`, job_id: HELD },
      differing: 1_035,
    }),
  },
  {
    bucket: 'acme-clickstream',
    source: 'eventbridge',
    status: bad('events_unproven', 40 * MINUTE_MS, 'No event has arrived since it was connected', doctor('acme-clickstream')),
    wiring: { state: 'broken', since: ago(40 * MINUTE_MS), checked_at: ago(MINUTE_MS), findings: brokenRule },
    last_event_at: undefined,
    last_compared_at: ago(30 * MINUTE_MS),
    created_at: ago(40 * MINUTE_MS),
  },
  { bucket: 'acme-media-masters', status: missing(25 * MINUTE_MS, 'DeleteObjects, 12 times') },
  { bucket: 'acme-ml-datasets' },
  { bucket: 'acme-backups', last_event_at: ago(4 * HOUR_MS) },
  { bucket: 'acme-web-assets' },
  {
    bucket: 'acme-reports',
    status: bad(
      'differs',
      MINUTE_MS,
      `37 objects are missing, 12 objects are outdated as of ${ago(MINUTE_MS).slice(11, 16)} UTC: a re-index begins (in 9 minutes)`,
      {
        differing: 49,
      },
    ),
  },
  { bucket: 'acme-scratch' },
];

export const troubledBuckets: readonly Bucket[] = troubles.map((trouble) => ({ ...healthy, ...trouble }));

const wholeJob: Job = {
  ...runningJob,
  id: WHOLE,
  bucket: 'acme-data-lake',
  requested_by: 'alice@acme.example',
  phase: 'comparing',
  created_at: ago(16 * MINUTE_MS),
  started_at: ago(15 * MINUTE_MS),
  comparing_at: ago(14 * MINUTE_MS),
  examples: {},
  progress: 0.43,
  counts: { ...zeroCounts, listed: 20_726_000, missing: 1_204, stale: 686, phantom: 604, written: 1_890, tombstones: 604 },
};

/** A job that ended after it had taken so long. */
const ended = (startMs: number, tookMs: number): Pick<Job, 'state' | 'progress' | 'created_at' | 'started_at' | 'finished_at'> => ({
  state: 'done',
  progress: 1,
  created_at: ago(startMs),
  started_at: ago(startMs),
  finished_at: ago(startMs - tookMs),
});

const heldJob: Job = {
  ...wholeJob,
  ...ended(6 * HOUR_MS, HOUR_MS),
  id: HELD,
  bucket: 'acme-invoices',
  requested_by: 'schedule',
  counts: { ...zeroCounts, listed: 810_900, phantom: 2_035, tombstones: 1_000, held: 1_035 },
  waiting: { deletions: 1_035 },
};

const doneJob: Job = {
  ...wholeJob,
  ...ended(2 * DAY_MS, 4 * MINUTE_MS),
  id: 'job-9d4h6v3t8y',
  bucket: 'acme-web-assets',
  mode: 'report',
  requested_by: 'schedule',
  counts: { ...zeroCounts, listed: 1_204_000 },
};

const closingJob: Job = {
  ...wholeJob,
  id: CLOSING,
  bucket: 'acme-media-masters',
  prefix: 'renders/2025/',
  requested_by: 'gap',
  phase: 'waiting',
  progress: undefined,
  counts: undefined,
};

/** What Tally did this morning, without anybody. */
const foundJob: Job = {
  ...doneJob,
  ...ended(5 * HOUR_MS, 2 * MINUTE_MS),
  id: 'job-3m8w2k5d9q',
  bucket: 'acme-scratch',
  counts: { ...zeroCounts, listed: 88_000, missing: 37, stale: 12 },
};

const repairJob: Job = {
  ...foundJob,
  ...ended(5 * HOUR_MS - 3 * MINUTE_MS, 37 * MINUTE_MS),
  id: 'job-4c7t1x6b3f',
  mode: 'apply',
  requested_by: 'gap',
  counts: { ...zeroCounts, listed: 88_000, missing: 37, stale: 12, written: 49 },
};

const failedJob: Job = {
  ...doneJob,
  ...ended(3 * HOUR_MS, MINUTE_MS),
  id: 'job-1a9z8y7x6w',
  bucket: 'acme-partner-drop',
  requested_by: 'gap',
  mode: 'apply',
  state: 'failed',
  counts: zeroCounts,
  error: { code: 'object.denied', reason: `S3 denies s3:ListBucket on acme-partner-drop, after ${'a-long-name/'.repeat(60)}` },
};

/** Those that have not ended first, each the newest first. */
export const troubledJobs: readonly Job[] = [wholeJob, closingJob, heldJob, failedJob, repairJob, foundJob, doneJob];

const gapOf = (bucket: string, example: string, more: Partial<Gap>): Gap => ({
  ...gap,
  id: `gap:${bucket}:bucket`,
  bucket,
  why: `${example}, 12 times`,
  reasons: [{ kind: 'loss', count: 12, last_seen_at: ago(2 * HOUR_MS), example }],
  since: ago(3 * HOUR_MS),
  next: 'a re-index begins',
  ...more,
});

const gaps: readonly Gap[] = [
  gapOf('acme-data-lake', 'messages expired in the queue', { job_id: wholeJob.id, next: `${wholeJob.id} repairs it` }),
  gapOf('acme-partner-drop', 'could not be served: object.denied', {
    next: 'the bucket cannot be re-indexed now: object.denied: S3 denies s3:ListBucket on acme-partner-drop',
    due_at: new Date(startedMs + 5 * MINUTE_MS).toISOString(),
  }),
  // it was reported after its job had begun
  gapOf('acme-media-masters', 'DeleteObjects', { due_at: new Date(startedMs + 5 * MINUTE_MS).toISOString() }),
  gapOf('acme-reports', 'a report found 49 differences', {
    reasons: [{ kind: 'drift', count: 1, last_seen_at: ago(MINUTE_MS), example: 'a report found 49 differences' }],
    since: ago(MINUTE_MS),
    due_at: new Date(startedMs + 9 * MINUTE_MS).toISOString(),
  }),
  gapOf('acme-scratch', 'a report found 49 differences', {
    id: 'gap:acme-scratch:closed',
    state: 'closed',
    next: undefined,
    reasons: [{ kind: 'drift', count: 1, last_seen_at: ago(5 * HOUR_MS), example: 'a report found 49 differences' }],
    since: ago(5 * HOUR_MS),
    job_id: repairJob.id,
    closed_at: repairJob.finished_at,
  }),
];

const letters: readonly DeadLetter[] = [
  { id: 'c1f0d3a2-7be9', sent_at: ago(3 * HOUR_MS), fault: 'message.not-json', reason: 'Unexpected end of JSON input', size_bytes: 214 },
  { id: '8a62e51c-03d4', sent_at: ago(5 * HOUR_MS), fault: 'record.invalid', reason: 'record 1 has no key', size_bytes: 1_180 },
];

const FOLDERS = ['events', 'exports', 'invoices', 'models', 'raw', 'renders', 'reports', 'snapshots'] as const;
const ENDS = ['parquet', 'csv', 'json', 'jpg', 'pdf', 'tar.gz'] as const;

/** The object with this number in the order of keys. */
function troubledObject(index: number): StoredObject {
  const folder = FOLDERS[Math.floor(index / 50) % FOLDERS.length] ?? 'raw';
  return {
    ...objectDocument,
    bucket: troubledBuckets[index % 3 === 0 ? 5 : 0]?.bucket ?? '',
    key: `${folder}/2026/part-${String(index).padStart(6, '0')}.${ENDS[index % ENDS.length] ?? 'bin'}`,
    size: ((index * 7_919) % 97_000) * 1_234 + 512,
    last_modified: ago(((index * 31) % 9_000) * 10 * MINUTE_MS),
  };
}

/** Answers of the registry with trouble. */
export function troubledOperations(): Partial<CheckedOperations> {
  const { checked } = createFakeControl();
  const bucketOf = (name: string): Bucket => troubledBuckets.find(({ bucket }) => bucket === name) ?? healthy;
  return {
    ...checked,
    listBuckets: async () => ({
      items: troubledBuckets,
      unconnected: [{ bucket: 'acme-legacy', count: 1_204, first_seen_at: ago(9 * DAY_MS), last_seen_at: ago(6 * MINUTE_MS) }],
      activity: { jobs: 2, dead_letters: letters.length },
    }),
    getBucket: async ({ params }) => bucketOf(params.bucket),
    listJobs: async ({ query }) => ({ items: troubledJobs.filter(({ bucket }) => query.bucket === undefined || bucket === query.bucket) }),
    getJob: async ({ params }) => troubledJobs.find(({ id }) => id === params.id) ?? wholeJob,
    listGaps: async ({ query: { bucket: name, state: wanted = 'open' } }) => ({
      items: gaps.filter(({ bucket, state }) => state === wanted && (name === undefined || bucket === name)),
    }),
    listDeadLetters: async () => ({ items: letters }),
    diagnoseBucket: async ({ params: { bucket } }) => {
      const findings = bucket === 'acme-clickstream' ? brokenRule : [];
      return { bucket, status: findings.length > 0 ? 'broken' : 'ok', findings };
    },
    explainObject: async ({ params: { bucket }, query: { key } }) => {
      const index = { ...troubledObject(0), bucket, key };
      const { size = 0, etag = '', last_modified: modified } = index;
      const state = { present: true, size_bytes: size, etag, last_modified: modified, storage_class: 'STANDARD' } as const;
      return {
        bucket,
        key,
        index,
        storage: { state, observed_at: ago(0) },
        agrees: true,
        sentence: `A search finds it as it was at ${ago(18 * MINUTE_MS)}: the index and S3 agree.`,
        bucket_status: bucketOf(bucket).status,
      };
    },
    searchObjects: async ({ query }) => ({
      items: Array.from({ length: query.limit }, (_, place) => troubledObject(place)),
      next: 'page-2',
      total: { value: 10_000, exact: false },
      as_of: troubledBuckets.slice(0, 2).map(({ bucket, status, gaps: open }) => ({ bucket, status, gaps: open })),
    }),
    getEvents: async () => eventsOfDay(),
    getUsage: async ({ query: { by = [], prefix = '' } }) => ({
      objects: 40_000,
      bytes: 2.4e12,
      by: [by].flat().map((each) => ({ by: each, groups: usageBy(each, prefix) })),
    }),
  };
}

const groupNames: Readonly<Record<UsageBy, readonly string[]>> = {
  folder: FOLDERS,
  extension: ENDS,
  class: ['STANDARD', 'GLACIER', 'STANDARD_IA'],
  size: ['1K', '1M', '100M', '1G'],
  age: ['1d', '7d', '30d', '90d', '365d', 'older'],
  bucket: troubledBuckets.map(({ bucket }) => bucket),
};

const usageBy = (by: UsageBy, prefix: string) =>
  groupNames[by].map((each, place) => {
    const name = by === 'folder' ? `${prefix}${each}/` : each;
    const filter = groupClause(by, name);
    const sums = { objects: Math.round(40_000 / (place + 1.4)), bytes: 1e12 / (place + 1) };
    return { name, ...sums, ...(filter !== undefined && { filter }) };
  });

/** Something that looks like days and nights. */
const wave = (place: number): number => 1 + Math.sin(place / 9) + 0.4 * Math.sin(place * 1.7);

function eventsOfDay() {
  const steps = Array.from({ length: 288 }, (_, place) => ({
    at: ago((288 - place) * 300_000),
    events: Math.round(Math.max(0, wave(place)) * 2_100),
    lag_p50_ms: Math.round(700 + 150 * wave(place * 3)),
    lag_p95_ms: Math.round(1_900 + 500 * wave(place * 5)),
  }));
  // a deployment
  return { from: ago(DAY_MS), to: ago(0), step_s: 300, steps: steps.toSpliced(100, 3) };
}
