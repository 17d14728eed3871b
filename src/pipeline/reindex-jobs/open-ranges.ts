/**
 * Whether a job has an open range, asked each time one of its ranges is done. The worker remembers a page of ranges that were
 * listed as open and reads the first of them alone; when none of the page is open any more, it lists the page behind it. So over
 * a whole job it lists each range about once, where a list of all ranges for each one that is done would grow with the square of
 * their number.
 */
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs } from '../records/stored.ts';
import { listRangesAfter } from './range-records.ts';

/** Ranges in one list: most pages show an open range among the first. */
const LIST_PAGE = 50;
/** Jobs that are remembered: more than compare at the same time. A job that is forgotten is listed from its beginning. */
const JOBS_MAX = 100;

/** What is known of a job: no range up to `through` is open except these, in the order of their numbers. */
interface Known {
  readonly open: readonly number[];
  readonly through: number;
}

export interface OpenRanges {
  /**
   * True: a range of the job is open now. False: the list shows none, which may lag, and ranges that were split off just now are
   * missing in it; so the caller reads them by their ids. Throws the store's fault.
   */
  readonly isAny: (jobId: string) => Promise<boolean>;
}

/** Creates the memory of one worker. */
export function createOpenRanges(state: StateStore): OpenRanges {
  const jobs = new Map<string, Known>();

  function remember(jobId: string, known: Known): void {
    jobs.delete(jobId);
    jobs.set(jobId, known);
    const [oldest] = jobs.keys();
    if (jobs.size > JOBS_MAX && oldest !== undefined) jobs.delete(oldest);
  }

  /** The first of them that is open, and those behind it. By their ids, since a list may show a range as open that was stored as done a moment ago. */
  async function stillOpen(jobId: string, numbers: readonly number[]): Promise<readonly number[]> {
    for (const [at, number] of numbers.entries()) {
      if ((await readRecord(state, refs.range(jobId, number)))?.done === false) return numbers.slice(at);
    }
    return [];
  }

  return {
    async isAny(jobId) {
      let { open, through } = jobs.get(jobId) ?? { open: [], through: -1 };
      for (;;) {
        open = await stillOpen(jobId, open);
        if (open.length > 0) {
          remember(jobId, { open, through });
          return true;
        }
        const page = await listRangesAfter(state, jobId, { number: through, limit: LIST_PAGE });
        const last = page.at(-1);
        if (last === undefined) {
          jobs.delete(jobId);
          return false;
        }
        open = page.filter(({ done }) => !done).map(({ number }) => number);
        through = last.number;
      }
    },
  };
}
