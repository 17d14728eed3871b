/** An apply, until it is done or its dialog is closed. */
import type { ConnectionView } from '../../api/connections.ts';
import { NOT_SHOWN_YET, untilApplied } from '../../api/until-applied.ts';
import { Problem } from './api.ts';

interface ApplyParts {
  readonly request: (isFirst: boolean) => Promise<ConnectionView>;
  readonly onWaiting: (waitingFor: string) => void;
}

/** Resolves once everything is applied. Throws a Problem, or the reason of the signal. */
export async function applyUntilDone({ request, onWaiting }: ApplyParts, signal: AbortSignal): Promise<ConnectionView> {
  const answer = await untilApplied({
    request: async (isFirst) => {
      signal.throwIfAborted();
      return request(isFirst);
    },
    onWaiting,
    sleep: (ms) => pause(ms, signal),
  });
  if (answer !== undefined) return answer;
  throw new Problem(NOT_SHOWN_YET, 'connect.busy', { advice: 'Apply it again in some minutes: it continues then.' });
}

/** Resolves after this time, or when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
