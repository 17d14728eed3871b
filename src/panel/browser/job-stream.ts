/**
 * The events of a job (https://html.spec.whatwg.org/multipage/server-sent-events.html), read by fetch:
 *
 *   connecting ──events──► connecting again after an end, with the id of the last event
 *        └──204, or the event of the end state──► ended
 */
import type { Job } from '../../api/jobs.ts';
import { answerOf, Problem, problemFrom, send } from './api.ts';

/** How long the stream waits before it connects again. The registry sends the same number. */
const RETRY_MS = 2_000;
/** The registry sends at least a comment every 15 s; a connection that says nothing for longer is lost. */
const SILENCE_MAX_MS = 40_000;

interface StreamParts {
  readonly id: string;
  readonly onJob: (job: Job) => void;
  /** Why nothing is known at the moment; undefined: events arrive again. */
  readonly onTrouble: (problem: Problem | undefined) => void;
}

interface Frame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string | undefined;
}

/** Follows a job until it has ended, or the signal is aborted. */
export async function followJob(parts: StreamParts, signal: AbortSignal): Promise<void> {
  const seen: Seen = { lastId: undefined };
  while (!signal.aborted) {
    try {
      if ((await readStream(parts, seen, signal)) === 'ended') return;
    } catch (error) {
      if (signal.aborted) return;
      const problem = problemFrom(error);
      parts.onTrouble(problem);
      // these do not pass by waiting
      if (['job.not-found', 'authentication.failed'].includes(problem.code)) return;
    }
    await pause(RETRY_MS, signal);
  }
}

interface Seen {
  /** The id of the last event, with which the stream is continued. */
  lastId: string | undefined;
}

/** Reads one connection to its end: `ended` once the job has ended, `cut` if there may be more. */
async function readStream({ id, onJob, onTrouble }: StreamParts, seen: Seen, signal: AbortSignal): Promise<'ended' | 'cut'> {
  const silence = new AbortController();
  const headers = { accept: 'text/event-stream', ...(seen.lastId !== undefined && { 'last-event-id': seen.lastId }) };
  const response = await send('GET /v1/jobs/{id}/events', { params: { id } }, AbortSignal.any([signal, silence.signal]), headers);
  if (response.status === 204) return 'ended';
  if (!response.ok) await answerOf(response);
  for await (const frame of framesOf(response, silence)) {
    seen.lastId = frame.id ?? seen.lastId;
    onTrouble(frame.event === 'problem' ? new Problem('the job cannot be read at the moment', 'job.unreadable') : undefined);
    if (frame.event === 'job' && frame.data !== undefined) onJob(JSON.parse(frame.data));
    if (frame.id === 'end') return 'ended';
  }
  return 'cut';
}

async function* framesOf(response: Response, silence: AbortController): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let rest = '';
  let timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
  try {
    for await (const bytes of response.body ?? []) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
      rest += decoder.decode(bytes, { stream: true });
      const parts = rest.split('\n\n');
      rest = parts.pop() ?? '';
      yield* parts.map(frameOf);
    }
  } finally {
    clearTimeout(timer);
  }
}

function frameOf(text: string): Frame {
  const fields = new Map(text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trimStart()]));
  return { id: fields.get('id'), event: fields.get('event'), data: fields.get('data') };
}

/** Resolves after this time, or when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
