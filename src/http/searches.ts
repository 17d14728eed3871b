/** Bounds what operations may take, so that a flood of searches never keeps a process from answering probes or indexing events. */
import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import type { Row } from '../api/row.ts';
import { RequestError } from '../domain/request-error.ts';
import { inTime } from '../domain/in-time.ts';

/** An operation that takes longer is aborted. Searches take milliseconds; reading a thousand dead letters takes some seconds. */
export const OPERATION_TIMEOUT_MS = 30_000;

/** The error of an operation that took too long. */
export function tooSlow(timeoutMs: number): RequestError {
  return new RequestError('request.timeout', `the answer took longer than ${timeoutMs / 1_000} s: try again, or ask for less`);
}

/** Two threads search a SQLite index, and each has two searches that take turns. */
const CONCURRENCY = 4;
/** The last of them waits for about a second. */
const WAITING_MAX = 100;

/** Runs the operation of a row, a search when its turn has come. Throws `request.overloaded` if too many wait, and the signal's reason as soon as it is aborted. */
type RunOperation = <Answer>(row: Pick<Row, 'heavy'>, operation: () => Promise<Answer>, signal: AbortSignal) => Promise<Answer>;

/** Creates the turns of one process. */
export function createRunOperation(): RunOperation {
  // a sum runs beside the searches whose results it accompanies
  const turnsOf = { search: new PQueue({ concurrency: CONCURRENCY }), sum: new PQueue({ concurrency: 1 }) };

  async function runInTurn<Answer>(turns: PQueue, search: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    if (turns.size >= WAITING_MAX) {
      throw new RequestError('request.overloaded', `${WAITING_MAX} searches wait for their turn already: try again in a second`);
    }
    return turns.add(async () => {
      // one event after another would wait for all searches that follow each other without a pause
      await setImmediate();
      signal.throwIfAborted();
      return search();
    });
  }

  return ({ heavy }, operation, signal) => inTime(heavy === undefined ? operation() : runInTurn(turnsOf[heavy], operation, signal), signal);
}
