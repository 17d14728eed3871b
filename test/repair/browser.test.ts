import { expect, it } from 'vitest';
import { createLetterBrowser } from '../../src/repair/letter-browser.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../support/fakes/ports.ts';

const DLQ = 'http://queues/dead';

async function setUp(letters: number) {
  const queues = createFakeQueues(createFakeClock());
  for (let each = 0; each < letters; each += 1) await queues.send(DLQ, { body: `letter ${each}`, attributes: {} });
  const browse = createLetterBrowser({ queues, telemetry: createFakeTelemetry() });
  async function read(signal?: AbortSignal): Promise<number> {
    let count = 0;
    await browse(
      DLQ,
      async (batch) => {
        count += batch.length;
        // lets the other readings run, if they could
        await Promise.resolve();
        return { gone: [], isEnough: false };
      },
      signal,
    );
    return count;
  }
  return { read };
}

it('Fix: readings at the same time see every letter each', async () => {
  const { read } = await setUp(25);
  expect(await Promise.all([read(), read(), read()])).toEqual([25, 25, 25]);
});

it('a reading whose caller has gone leaves the queue to the next one', async () => {
  const { read } = await setUp(3);
  const gone = new AbortController();
  const first = read();
  const second = read(gone.signal);
  const third = read();
  gone.abort(new Error('gone'));
  await expect(second).rejects.toThrow('gone');
  expect([await first, await third]).toEqual([3, 3]);
});
