/** A control plane that notes down what it is asked and answers with fixed records. */
import type { BucketRecord } from '../../../src/domain/bucket.ts';
import type { ObjectDocument } from '../../../src/domain/documents/document.ts';
import type { GapRecord } from '../../../src/domain/gaps/gap.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import type { JobView } from '../../../src/domain/reindex/job-view.ts';
import type { Control, DeadLetter, Explanation } from '../../../src/pipeline/control/control.ts';

const AT_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

export const bucketRecord: BucketRecord = {
  bucket: 'photos',
  region: 'eu-west-1',
  source: 'notification',
  versioning: { status: 'enabled', observedAtMs: AT_MS },
  enrich: 'none',
  floor: 0,
  createdAtMs: AT_MS,
  createdBy: 'test',
  checkedAtMs: AT_MS,
};

/** A key that would blank a terminal, turn the reading direction and break a line. */
export const nastyKey = 'a b/ü\u001b[2J\u202e\n"\\.jpg';

export const objectDocument: ObjectDocument = {
  bucket: 'photos',
  key: nastyKey,
  size: 12,
  etag: 'e1',
  last_modified: '2026-01-02T03:04:05.000Z',
  deleted: false,
  clock: 1_767_323_045_000_000,
  settled: true,
  source: 'native',
  indexed_at: '2026-01-02T03:04:06.000Z',
};

export const explanation: Explanation = {
  bucket: 'photos',
  key: 'cat.jpg',
  index: { ...objectDocument, key: 'cat.jpg' },
  storage: { state: { present: false }, observedAt: '2026-01-02T03:04:05.000Z' },
  clocks: { document: 1_767_323_045_000_000, floor: 0 },
  agrees: false,
  sentence: 'The index holds it although S3 does not: its event may be late.',
};

export const gap: GapRecord = {
  id: 'gap:photos:loss',
  bucket: 'photos',
  kind: 'loss',
  reason: 'dead letter: record.key-missing',
  firstSeenMs: AT_MS,
  lastSeenMs: AT_MS,
  count: 2,
  state: 'open',
};

export const job: JobView = {
  id: 'job-1',
  bucket: 'photos',
  prefix: '',
  mode: 'apply',
  requestedBy: 'test',
  state: 'queued',
  createdAtMs: AT_MS,
  ranges: { cut: 0, done: 0, leased: 0 },
};

/** The same an hour later. */
export const runningJob: JobView = {
  ...job,
  state: 'running',
  phase: 'comparing',
  startedAtMs: AT_MS,
  coversBeforeMs: AT_MS,
  documentsAtStart: 4_000,
  counts: { ...noCounts, listed: 1_000, equal: 990, missing: 6, stale: 4, phantom: 2, written: 10, tombstones: 2, listRequests: 5 },
  examples: { missing: [{ key: nastyKey }], stale: [{ key: 'b', fields: ['etag', 'size'] }] },
  progress: 0.25,
  objectsPerSecond: 25_000,
  ranges: { cut: 8, done: 2, leased: 3 },
  costUsd: 0.000_025,
};

export const deadLetter: DeadLetter = {
  id: 'letter-1',
  sentAt: '2026-01-02T03:04:05.000Z',
  fault: 'message.not-json',
  reason: 'Unexpected token',
  sizeBytes: 3,
};

export interface FakeControl {
  readonly control: Control;
  /** What was asked, in order: the verb and its arguments without the signal. */
  readonly asked: readonly (readonly unknown[])[];
  /** The signals that verbs were given, in order. */
  readonly signals: readonly (AbortSignal | undefined)[];
  /** The next verb of which this was not said yet does this instead. */
  nextDoes(action: (signal: AbortSignal | undefined) => Promise<unknown>): void;
}

/** Creates one. Searches have a second page. */
export function createFakeControl(): FakeControl {
  const asked: unknown[][] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const nexts: ((signal: AbortSignal | undefined) => Promise<unknown>)[] = [];

  function verb<Args extends readonly unknown[], Answer>(name: string, answer: (...args: Args) => Answer) {
    return async (...args: [...Args, AbortSignal?]): Promise<Answer> => {
      const last = args.at(-1);
      const signal = last instanceof AbortSignal ? last : undefined;
      const own = signal === undefined ? args : args.slice(0, -1);
      asked.push([name, ...own]);
      signals.push(signal);
      const action = nexts.shift();
      return (action === undefined ? answer(...(own as unknown as Args)) : await action(signal)) as Answer;
    };
  }

  const control: Control = {
    search: verb('search', (request) => ({ items: [objectDocument], ...(request.cursor === undefined && { next: 'page-2' }) })),
    explain: verb('explain', (_bucket: string, _key: string) => explanation),
    buckets: {
      list: verb('buckets.list', () => ({
        connected: [bucketRecord],
        unconnected: [{ bucket: 'stray', count: 3, firstSeenMs: AT_MS, lastSeenMs: AT_MS }],
      })),
      get: verb('buckets.get', (_bucket: string) => bucketRecord),
      add: verb('buckets.add', (_request: unknown, _by: string) => bucketRecord),
      remove: verb('buckets.remove', (_bucket: string): void => undefined),
    },
    gaps: verb('gaps', (_request: unknown) => ({ items: [gap] })),
    jobs: {
      request: verb('jobs.request', (_request: unknown, _by: string) => job),
      get: verb('jobs.get', (_id: string) => job),
      list: verb('jobs.list', (_request: unknown) => ({ items: [job], next: 'page-2' })),
      cancel: verb('jobs.cancel', (_id: string) => ({ ...job, state: 'cancelled' as const })),
      pause: verb('jobs.pause', (_id: string) => ({ ...job, state: 'paused' as const, pausedBecause: 'requested' as const })),
      resume: verb('jobs.resume', (_id: string, _request: unknown) => job),
    },
    deadLetters: {
      list: verb('deadLetters.list', (_request: unknown) => [deadLetter]),
      show: verb('deadLetters.show', (_id: string) => ({ ...deadLetter, body: '{x}\u001b[2J' })),
      replay: verb('deadLetters.replay', (_ids: unknown) => 2),
      discard: verb('deadLetters.discard', (_ids: unknown) => 1),
    },
  };
  return {
    control,
    asked,
    signals,
    nextDoes: (action) => {
      nexts.push(action);
    },
  };
}
