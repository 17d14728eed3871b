/** Bounds the searches of a process, so that a flood of them never keeps it from answering probes or indexing events. */
import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import { RequestError } from '../domain/request-error.ts';

/** A search of a SQLite index occupies the process for some 10 ms. After this many of them, everything else has its turn. */
const CONCURRENCY = 4;
/** The last of them waits for about a second. */
const WAITING_MAX = 100;

/** Runs a search when its turn has come. Throws `request.overloaded` if too many wait, and the signal's reason. */
export type RunSearch = <Answer>(search: () => Promise<Answer>, signal: AbortSignal) => Promise<Answer>;

/** Creates the turns of one process. */
export function createSearches(): RunSearch {
  const turns = new PQueue({ concurrency: CONCURRENCY });
  return async function runSearch(search, signal) {
    if (turns.size >= WAITING_MAX) {
      throw new RequestError('request.overloaded', `${WAITING_MAX} searches wait for their turn already: try again in a second`);
    }
    return turns.add(async () => {
      // one event after another would wait for all searches that follow each other without a pause
      await setImmediate();
      signal.throwIfAborted();
      return search();
    });
  };
}
