/**
 * Mistakes that the simulation must find. Each gives one part of the product another view of the stored records, or of time: so
 * the mistake is as small as one wrong line, and the code that is tested stays as it is.
 */
import { omit } from '../../../src/base/defined.ts';
import type { Clock } from '../../../src/process/clock.ts';
import type { StateEntry, StateStore } from '../../../src/store/store.ts';

/** What each part of the product sees. */
export interface Views {
  /** The records as the round that closes gaps sees them. */
  readonly closing: (state: StateStore) => StateStore;
  /** The records as the workers see them. */
  readonly workers: (state: StateStore) => StateStore;
  /** The records as the acts of people see them. */
  readonly people: (state: StateStore) => StateStore;
  /** The clocks of the workers. */
  readonly workerClock: (clock: Clock) => Clock;
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Nothing is wrong. */
const productViews: Views = {
  closing: (state) => state,
  workers: (state) => state,
  people: (state) => state,
  workerClock: (clock) => clock,
};

type Fields = Readonly<Record<string, unknown>>;

/** The store with records of one kind changed when they are read by id or listed. */
function reading(kind: string, change: (record: Fields) => Fields): Views['closing'] {
  const seen = (entry: StateEntry): StateEntry => (entry.kind === kind ? { ...entry, record: change(entry.record as Fields) } : entry);
  return (state) => ({
    ...state,
    get: async (...asked) => {
      const entry = await state.get(...asked);
      return entry && seen(entry);
    },
    list: async (...asked) => (await state.list(...asked)).map(seen),
  });
}

const SAFE_MAX = Number.MAX_SAFE_INTEGER;

/** The part as one that has not waited for long. */
function neverStuck(part: Fields): Fields {
  return part['fault'] === undefined ? part : { ...part, fault: { ...(part['fault'] as Fields), sinceMs: SAFE_MAX } };
}

/** A mark of a key that announces a delete is taken for the word of the whole bucket. */
function liftingByKey(state: StateStore): StateStore {
  return {
    ...state,
    async list(...asked) {
      const entries = await state.list(...asked);
      const lifts = ({ kind, record }: StateEntry): boolean => {
        const { prefix, deletes } = record as Fields;
        return kind === 'gap' && prefix !== undefined && deletes === 'announced';
      };
      if (!entries.some(lifts)) return entries;
      return entries.map((entry) => ({ ...entry, record: { ...(entry.record as Fields), deletes: 'announced' } }));
    },
  };
}

/**
 * Each mistake by name, with a part of what the simulation must say of it, and a seed whose story finds it within eight seconds of
 * CPU (twenty for keys that S3 refuses). A change of the code changes the stories: `npm run simulate:gaps -- --days 45 --seed N --mutant NAME` tells what others cost, and what they find.
 */
export const mutants: Readonly<
  Record<string, { readonly views: Partial<Views>; readonly finds: RegExp; readonly seed: number; readonly isWhole?: true }>
> = {
  'a paused job keeps its gap': {
    views: { closing: reading('job', (job) => (job['state'] === 'paused' ? { ...job, state: 'running' } : job)) },
    finds: /was not repaired/,
    seed: 2,
  },
  'a failed job keeps its gap': {
    views: { closing: reading('job', (job) => (job['state'] === 'failed' ? { ...job, state: 'running' } : job)) },
    finds: /was not repaired/,
    seed: 34,
  },
  'a failing job is tried again without a pause': {
    views: { closing: reading('gap', (mark) => omit(mark, 'waits')) },
    finds: /jobs were begun for gaps/,
    seed: 15,
  },
  'what a fast clock put off is not due': {
    views: {
      workers: (state) => ({ ...state, due: (when, signal) => state.due({ ...when, aheadMaxMs: SAFE_MAX / 2 }, signal) }),
    },
    finds: /has not ended/,
    seed: 2,
  },
  'a lease is never watched to its end': {
    views: { workerClock: (clock) => ({ ...clock, steadyMs: () => 0 }) },
    finds: /has not ended/,
    seed: 30,
  },
  'a repair keeps a distance that never ends': {
    views: { closing: reading('bucket', (bucket) => ({ ...bucket, repaired: { atMs: SAFE_MAX, comparingMs: 10 * DAY_MS } })) },
    finds: /was not repaired/,
    seed: 1,
  },
  'a job is believed to cover more than it does': {
    views: {
      closing: reading('job', (job) =>
        typeof job['coversBeforeMs'] === 'number' ? { ...job, coversBeforeMs: job['coversBeforeMs'] + DAY_MS } : job,
      ),
    },
    finds: /without a job that covers/,
    seed: 1,
  },
  'a job covers what was reported after it began': {
    views: { closing: reading('job', (job) => ({ ...job, beginOrder: SAFE_MAX })) },
    finds: /without a job that covers/,
    seed: 4,
  },
  'the minutes that AWS needs after a change do not count': {
    views: {
      closing: (state) =>
        reading('gap', (mark) => omit(mark, 'waits'))(
          reading('job', (job) =>
            typeof job['coversBeforeMs'] === 'number' ? { ...job, coversBeforeMs: job['coversBeforeMs'] + 21 * MINUTE_MS } : job,
          )(state),
        ),
    },
    finds: /without a job that covers/,
    seed: 1,
  },
  'a gap closes although its wiring is broken': {
    views: { closing: reading('gap', (mark) => omit(mark, 'unproven')) },
    finds: /although its wiring is broken/,
    seed: 1,
  },
  'a gap that awaits its proof starts jobs for ever': {
    views: { closing: reading('gap', ({ compared, ...mark }) => (compared === true ? { ...mark, order: SAFE_MAX } : mark)) },
    finds: /jobs were begun for gaps/,
    seed: 1,
  },
  'consent for deletions is assumed': {
    views: { workers: reading('gap', (mark) => ({ ...mark, deletes: 'announced' })) },
    finds: /without consent/,
    seed: 1,
  },
  'the mark of a key lifts the deletion limit': {
    views: { workers: liftingByKey },
    finds: /without consent/,
    seed: 21,
  },
  'deletions that wait are forgotten': {
    views: { workers: reading('bucket', (bucket) => omit(bucket, 'waiting')) },
    finds: /beyond consent|no record says so/,
    seed: 1,
  },
  'a job that a person stops leaves its limit to the next one': {
    views: {
      people: (state) => ({
        ...state,
        put: (entry, ...asked) =>
          state.put(entry.kind === 'bucket' ? { ...entry, record: omit(entry.record as Fields, 'waiting') } : entry, ...asked),
      }),
    },
    finds: /has a second limit/,
    seed: 10,
  },
  'what a person stopped is begun again': {
    views: { closing: reading('gap', (mark) => omit(mark, 'held')) },
    finds: /although a person stopped it/,
    seed: 2,
  },
  'keys that S3 refuses keep their job for ever': {
    views: {
      // a job that goes on for long would otherwise fail because its processes are killed
      workers: reading('job', (job) => ({
        ...omit(job, 'fruitless'),
        ...(Array.isArray(job['parts']) && { parts: job['parts'].map(neverStuck) }),
      })),
    },
    finds: /has not ended/,
    seed: 14,
    isWhole: true,
  },
  'a decline leaves the job that was allowed': {
    views: { people: (state) => ({ ...state, list: async (kind, ...asked) => (kind === 'job' ? [] : state.list(kind, ...asked)) }) },
    finds: /what was declined/,
    seed: 3,
    isWhole: true,
  },
  'a job that was requested with --now closes gaps': {
    views: {
      closing: reading('job', ({ now, ...job }) => (now === true ? { ...job, coversBeforeMs: SAFE_MAX, beginOrder: SAFE_MAX } : job)),
    },
    finds: /without a job that covers/,
    seed: 1,
  },
  'a job of one prefix closes the gaps of the whole bucket': {
    views: { closing: reading('job', (job) => ({ ...job, prefix: '' })) },
    finds: /without a job that covers/,
    seed: 7,
  },
};

/** The views of a mutant, or those of the product. */
export function viewsOf(mutant: string | undefined): Views {
  return { ...productViews, ...(mutant === undefined ? {} : mutants[mutant]?.views) };
}
