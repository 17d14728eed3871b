import { expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { repeat } from '../../src/process/async.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

function createWorld(work: (signal: AbortSignal) => Promise<void>) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const stopping = new AbortController();
  repeat({ clock, telemetry }, { name: 'look', intervalMs: 1_000, signal: stopping.signal }, work);
  return { clock, telemetry, stopping };
}

it('tells a failure and goes on', async () => {
  let times = 0;
  const { clock, telemetry } = createWorld(async () => {
    times += 1;
    throw new FaultError('index.unreachable', 'no answer');
  });
  await clock.advance(2_000);
  expect(times).toBe(2);
  expect(telemetry.recorded('requestFailed')).toEqual([
    ['look', 'index.unreachable', 'no answer'],
    ['look', 'index.unreachable', 'no answer'],
  ]);
});

it('ends when it is stopped, in a wait or in the work, and calls neither a failure', async () => {
  const waiting = createWorld(() => Promise.resolve());
  waiting.stopping.abort(new Error('the process stops'));
  await waiting.clock.advance(5_000);
  expect(waiting.clock.sleepers()).toBe(0);

  const working = createWorld((signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error()))));
  await working.clock.advance(1_000);
  working.stopping.abort(new Error('the process stops'));
  await working.clock.advance(5_000);
  expect(working.clock.sleepers()).toBe(0);
  for (const { telemetry } of [waiting, working]) expect(telemetry.facts).toEqual([]);
});
