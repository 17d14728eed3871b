import { expect, it } from 'vitest';
import type { ConnectionView } from '../../../src/registry/contract/connections.ts';
import { untilApplied } from '../../../src/registry/contract/until-applied.ts';

const applied: ConnectionView = { bucket: 'photos', state: 'applied' };
const applying = (more: Partial<ConnectionView> = {}): ConnectionView => ({ bucket: 'photos', state: 'applying', ...more });

/** Asks for each answer in its turn, and for the last one again and again. */
async function played(...answers: readonly ConnectionView[]) {
  const seen: (string | number)[] = [];
  let requests = 0;
  const answer = await untilApplied({
    request: async () => {
      requests += 1;
      return answers[Math.min(requests, answers.length) - 1] ?? applied;
    },
    onWaiting: (waitingFor) => seen.push(waitingFor),
    sleep: async (ms) => void seen.push(ms),
  });
  return { answer, seen, requests };
}

it('an apply is asked for again until it is applied, as long after each answer as the registry says', async () => {
  const { answer, seen, requests } = await played(applying({ waiting_for: 'S3', retry_after_ms: 2_000 }), applying(), applied);
  expect(answer).toBe(applied);
  expect(seen).toEqual(['S3', 2_000, 'AWS', 500]);
  expect(requests).toBe(3);
});

it('an apply whose parts AWS never shows ends without an answer', async () => {
  const { answer, requests } = await played(applying());
  expect(answer).toBeUndefined();
  expect(requests).toBe(300);
});
