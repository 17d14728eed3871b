/**
 * How a client applies: in passes, each a request. The command line and the panel do it, so it brings nothing with it.
 *
 *   request ──applying──► wait, and request again
 *      └──applied──► done
 */
import type { ConnectionView } from './connections.ts';

/** Ten minutes or more. AWS takes at most one until policies take effect. */
const REQUESTS_MAX = 300;
/** The shortest wait, whatever the registry asks for. */
const WAIT_MIN_MS = 500;

/** What to say if the passes don't end. */
export const NOT_SHOWN_YET = 'AWS does not show the change yet';

interface ApplyParts {
  /** Sends one pass's request. */
  readonly request: () => Promise<ConnectionView>;
  /** What the next pass waits for, in the registry's words. */
  readonly onWaiting: (waitingFor: string) => void;
  readonly sleep: (ms: number) => Promise<void>;
}

/** Repeats the request until everything is applied. Undefined: after all these requests, AWS doesn't show it yet. Throws what they throw. */
export async function untilApplied({ request, onWaiting, sleep }: ApplyParts): Promise<ConnectionView | undefined> {
  for (let count = 0; count < REQUESTS_MAX; count += 1) {
    const answer = await request();
    if (answer.state !== 'applying') return answer;
    onWaiting(answer.waiting_for ?? 'AWS');
    await sleep(Math.max(WAIT_MIN_MS, answer.retry_after_ms ?? 0));
  }
  return undefined;
}
