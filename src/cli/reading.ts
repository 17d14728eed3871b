/** Reads again and again what a command follows, over restarts of the registry and failovers of its store. */
import type { Clock } from '../process/clock.ts';
import { RequestError } from '../base/request-error.ts';
import { messageOf } from './errors.ts';

/** Errors after which no read can succeed: what is read is gone, or its reader may not read it any more. */
const endings: ReadonlySet<string> = new Set([
  'job.not-found',
  'bucket.not-connected',
  'request.invalid',
  'authentication.failed',
  'authorization.denied',
  'session.required',
]);
/** How long it may be unreadable. A registry that restarts, or a store that fails over, is back within this time. */
const TROUBLE_MS = 120_000;

interface Reading<Answer> {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly look: (signal: AbortSignal) => Promise<Answer>;
  readonly say: (text: string) => void;
}

/** Creates the function that reads. While that fails, it says the reason once and returns undefined; it throws what does not pass by waiting. */
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
