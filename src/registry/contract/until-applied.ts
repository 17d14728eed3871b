/**
 * How a client applies: in passes, each a request. The command line and the panel do it, so it brings nothing with it.
 *
 *   request ──applying──► wait, and request again
 *      └──applied──► done
 */
import type { ConnectionView } from './connections.ts';

/** Ten minutes and more. AWS needs one at most until policies count. */
const REQUESTS_MAX = 300;
/** Whatever the registry asks for, it is not asked more often. */
const WAIT_MIN_MS = 500;

/** What to say of an apply that does not end. */
export const NOT_SHOWN_YET = 'AWS does not show yet what was made';

interface ApplyParts {
  /** Sends the request of a pass. */
  readonly request: () => Promise<ConnectionView>;
  /** What the next pass waits for, in the words of the registry. */
  readonly onWaiting: (waitingFor: string) => void;
  readonly sleep: (ms: number) => Promise<void>;
}

/** Repeats the request until everything is applied. Undefined: AWS did not show it in all these requests. Throws what they throw. */
export async function untilApplied({ request, onWaiting, sleep }: ApplyParts): Promise<ConnectionView | undefined> {
  for (let count = 0; count < REQUESTS_MAX; count += 1) {
    const answer = await request();
    if (answer.state !== 'applying') return answer;
    onWaiting(answer.waiting_for ?? 'AWS');
    await sleep(Math.max(WAIT_MIN_MS, answer.retry_after_ms ?? 0));
  }
  return undefined;
}
