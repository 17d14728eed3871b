import { expect, it } from 'vitest';
import { createLastFailure } from '../../src/observing/last-failure.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

it('Fix: does not forget the failure of one queue because another answers, and forgets it after twenty minutes without a try', async () => {
  const clock = createFakeClock();
  const last = createLastFailure(clock);
  const denied = { code: 'queue.unreachable', reason: 'kms:Decrypt is denied' } as const;
  last.failed('one', denied);
  last.succeeded('two');
  expect([last.current(), last.current('one'), last.current('two')]).toEqual([denied, denied, undefined]);
  last.succeeded('one');
  expect(last.current()).toBeUndefined();
  last.failed('one', denied);
  await clock.advance(1_199_999);
  expect(last.current()).toEqual(denied);
  await clock.advance(1);
  expect(last.current()).toBeUndefined();
});
