/** Watches one job, and reports each change of it. */
import { FaultError } from '../../domain/fault.ts';
import { hasEnded } from '../../domain/reindex/job.ts';
import type { Job } from '../../api/jobs.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import { inTime } from '../../domain/in-time.ts';

/** The interval of reads: short enough for a person who watches, while each read costs a few requests to the state store. */
const LOOK_INTERVAL_MS = 1_000;
/** A read of the job that takes longer counts as failed, so that silence is reported in time. */
export const LOOK_TIMEOUT_MS = 5_000;

/** Errors after which no look can succeed: the job is gone, or its reader may not read it any more. */
const endings: ReadonlySet<string> = new Set(['job.not-found', 'authentication.failed', 'authorization.denied', 'session.required']);

export type JobNews =
  | { readonly kind: 'job'; readonly job: Job }
  /** The job could not be read. The same trouble is reported once, until the job can be read again. */
  | { readonly kind: 'trouble'; readonly error: unknown }
  /** Nothing has changed for a while. */
  | { readonly kind: 'silence' };

interface Watch {
  /** Throws as the operation `getJob` does. */
  readonly look: (signal: AbortSignal) => Promise<Job>;
  readonly clock: Clock;
  /** Silence is reported after this time without other news, at most LOOK_TIMEOUT_MS and one second later. */
  readonly silenceMs: number;
}

/**
 * Reports the job as it is, then again after each change (at most once a second) until it has ended. Returns after the
 * end state, or when the signal is aborted. Throws `job.not-found` when the job is gone, and the
 * refusal of a reader who may not read it any more; other errors are reported.
 */
export async function* watchJob({ look, clock, silenceMs }: Watch, signal: AbortSignal): AsyncGenerator<JobNews, void, void> {
  let reported = '';
  let reportedAtMs = clock.monotonicMs();
  while (!signal.aborted) {
    const news = await lookOnce(look, signal);
    if (signal.aborted) return;
    const text = textOf(news);
    const isNew = text !== reported;
    if (isNew || clock.monotonicMs() - reportedAtMs >= silenceMs) {
      yield isNew ? news : { kind: 'silence' };
      reported = text;
      reportedAtMs = clock.monotonicMs();
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
    if (error instanceof RequestError && endings.has(error.code)) throw error;
    if (!late.aborted) return { kind: 'trouble', error };
    const slow = `the job could not be read within ${LOOK_TIMEOUT_MS / 1_000} s`;
    return { kind: 'trouble', error: new RequestError('request.timeout', slow) };
  }
}

/** Returns a text that is equal for equal news. */
function textOf(news: JobNews): string {
  if (news.kind === 'job') return JSON.stringify(news.job);
  if (news.kind === 'silence') return '';
  const { error } = news;
  return error instanceof FaultError || error instanceof RequestError ? error.code : String(error);
}
