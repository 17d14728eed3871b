/**
 * An apply is made in passes, each a request of at most 20 s:
 *
 *   request ──applying──► wait, and request again
 *      └──applied──► done
 */
import type { ConnectionView } from '../../api/connections.ts';
import { Problem } from './api.ts';
import { pause } from './job-stream.ts';

/** Ten minutes and more. AWS needs one at most until policies count. */
const REQUESTS_MAX = 300;
/** Whatever the registry asks for, it is not asked more often. */
const WAIT_MIN_MS = 500;

interface ApplyParts {
  /** Sends the request of a pass. */
  readonly request: (isFirst: boolean) => Promise<ConnectionView>;
  /** What the next pass waits for, in the words of the registry. */
  readonly onWaiting: (waitingFor: string) => void;
}

/** Repeats the request until everything is applied. Throws a Problem, or the reason of the signal. */
export async function untilApplied({ request, onWaiting }: ApplyParts, signal: AbortSignal): Promise<ConnectionView> {
  for (let count = 0; count < REQUESTS_MAX; count += 1) {
    signal.throwIfAborted();
    const answer = await request(count === 0);
    if (answer.state !== 'applying') return answer;
    onWaiting(answer.waiting_for ?? 'AWS');
    await pause(Math.max(WAIT_MIN_MS, answer.retry_after_ms ?? 0), signal);
  }
  throw new Problem('AWS does not show yet what was made', 'connect.busy', {
    advice: 'Apply it again in some minutes: it continues then.',
  });
}
