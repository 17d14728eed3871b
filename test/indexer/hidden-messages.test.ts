import { expect, it } from 'vitest';
import { createHiddenMessages } from '../../src/indexer/waiting.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

it('knows of each bucket until when its messages are hidden, and forgets those that were settled here or must be elsewhere', async () => {
  const clock = createFakeClock();
  const sinceMs = clock.nowMs();
  const messages = createHiddenMessages(clock);
  const fault = { code: 'bucket.denied', reason: 'no' } as const;
  messages.hidden('one', ['photos', 'videos'], { fault, delayS: 30 });
  await clock.advance(10_000);
  messages.hidden('two', ['photos'], { fault, delayS: 60 });
  const photos = { bucket: 'photos', code: 'bucket.denied', sinceMs, leftMs: 60_000 };
  expect(messages.byBucket()).toEqual([photos, { bucket: 'videos', code: 'bucket.denied', sinceMs, leftMs: 20_000 }]);
  messages.settled('two');
  messages.settled('none');
  expect(messages.byBucket()).toMatchObject([{ bucket: 'photos', leftMs: 20_000 }, { bucket: 'videos' }]);
  // it is visible again, and another process has received it
  await clock.advance(49_999);
  expect(messages.byBucket()).toMatchObject([{ bucket: 'photos', leftMs: 0 }, { bucket: 'videos' }]);
  await clock.advance(1);
  expect(messages.byBucket()).toEqual([]);
});
