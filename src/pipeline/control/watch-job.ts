/** Watching one job: what it says each time that it changes. */
import { FaultError } from '../../domain/fault.ts';
import { hasEnded } from '../../domain/reindex/job.ts';
import type { JobView } from '../../domain/reindex/job-view.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import { inTime } from '../serving/in-time.ts';

/** Often enough for a person who watches; one look costs some reads of the state store. */
const LOOK_INTERVAL_MS = 1_000;
/** A look that takes longer counts as failed, so that silence is told in time. */
export const LOOK_TIMEOUT_MS = 5_000;

export type JobNews =
  | { readonly kind: 'job'; readonly job: JobView }
  /** It could not be looked at, for the time being; told once until it can be again. */
  | { readonly kind: 'trouble'; readonly error: unknown }
  /** Nothing has changed for a while. */
  | { readonly kind: 'silence' };

interface Watch {
  /** Throws as `Control.jobs.get` does. */
  readonly look: (signal: AbortSignal) => Promise<JobView>;
  readonly clock: Clock;
  /** After so long without other news silence is told, LOOK_TIMEOUT_MS and one second later at most. */
  readonly silenceMs: number;
}

/**
 * Tells the job as it is, then again at each change (at most once a second) until it has ended. Returns after the end
 * state, or when the signal is aborted. Throws `job.not-found` when the job is gone; what else goes wrong is told.
 */
export async function* watchJob({ look, clock, silenceMs }: Watch, signal: AbortSignal): AsyncGenerator<JobNews, void, void> {
  let told = '';
  let toldAtMs = clock.monotonicMs();
  while (!signal.aborted) {
    const news = await lookOnce(look, signal);
    if (signal.aborted) return;
    const text = textOf(news);
    const isNew = text !== told;
    if (isNew || clock.monotonicMs() - toldAtMs >= silenceMs) {
      yield isNew ? news : { kind: 'silence' };
      told = text;
      toldAtMs = clock.monotonicMs();
    }
    if (news.kind === 'job' && hasEnded(news.job)) return;
    await clock.sleep(LOOK_INTERVAL_MS, signal).catch(() => undefined);
  }
}

async function lookOnce(look: Watch['look'], signal: AbortSignal): Promise<JobNews> {
  const late = AbortSignal.timeout(LOOK_TIMEOUT_MS);
  const limit = AbortSignal.any([signal, late]);
  try {
    return { kind: 'job', job: await inTime(look(limit), limit) };
  } catch (error) {
    if (error instanceof RequestError && error.code === 'job.not-found') throw error;
    if (!late.aborted) return { kind: 'trouble', error };
    const slow = `the job could not be looked at within ${LOOK_TIMEOUT_MS / 1_000} s`;
    return { kind: 'trouble', error: new RequestError('request.timeout', slow) };
  }
}

/** The same news has the same text. */
function textOf(news: JobNews): string {
  if (news.kind === 'job') return JSON.stringify(news.job);
  if (news.kind === 'silence') return '';
  const { error } = news;
  return error instanceof FaultError || error instanceof RequestError ? error.code : String(error);
}
