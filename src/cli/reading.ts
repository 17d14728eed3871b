/** Repeatedly reads what a command follows, through restarts of the registry and failovers of its store. */
import type { Clock } from '../process/clock.ts';
import { RequestError } from '../base/request-error.ts';
import { messageOf } from './errors.ts';

/** Errors after which no read can succeed: the subject is gone, or the reader may no longer read it. */
const endings: ReadonlySet<string> = new Set([
  'job.not-found',
  'bucket.not-connected',
  'request.invalid',
  'authentication.failed',
  'authorization.denied',
  'session.required',
]);
/** How long reads may fail. A restarting registry or a store that fails over is back within this time. */
const TROUBLE_MS = 120_000;

interface Reading<Answer> {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly look: (signal: AbortSignal) => Promise<Answer>;
  readonly say: (text: string) => void;
}

/** Creates the function that reads. While reads fail, it reports the reason once and returns undefined; it throws what waiting cannot cure. */
export function createReader<Answer>({ clock, look, say }: Reading<Answer>): (signal: AbortSignal) => Promise<Answer | undefined> {
  let trouble: { readonly text: string; readonly sinceMs: number } | undefined;
  return async function read(signal) {
    try {
      const answer = await look(signal);
      trouble = undefined;
      return answer;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof RequestError && endings.has(error.code)) throw error;
      const text = messageOf(error);
      if (text !== trouble?.text) say(`${text}; the command keeps trying`);
      trouble = { text, sinceMs: trouble?.sinceMs ?? clock.monotonicMs() };
      if (clock.monotonicMs() - trouble.sinceMs >= TROUBLE_MS) throw error;
      return undefined;
    }
  };
}
