import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { runUntilStopped } from '../../src/serve/lifecycle.ts';
import { runProgram } from '../docs/programs.ts';

/** A process whose parts do as the test says. Its deadline is far away unless a test wants it passed. */
function createWorld(shutdownTimeoutMs = 60_000) {
  const signals = new EventEmitter();
  const started = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const stopBegan = Promise.withResolvers<void>();
  const exits: number[] = [];
  const said: string[] = [];
  let stops = 0;
  const app = {
    start: () => started.promise,
    stop() {
      stops += 1;
      stopBegan.resolve();
      return stopped.promise;
    },
  };
  const exitCode = runUntilStopped({
    signals,
    app,
    shutdownTimeoutMs,
    exitNow: (code) => void exits.push(code),
    say: (message) => void said.push(message),
  });
  return { signals, started, stopped, stopBegan, exits, said, exitCode, stops: () => stops };
}

it.each(['SIGTERM', 'SIGINT'])('stops at the first %s and ends with 0', async (signal) => {
  const world = createWorld();
  world.started.resolve();
  await world.started.promise;
  expect(world.stops()).toBe(0);
  world.signals.emit(signal);
  world.stopped.resolve();
  expect(await world.exitCode).toBe(0);
  expect(world.stops()).toBe(1);
  expect(world.exits).toEqual([]);
  expect(world.said).toEqual([expect.stringContaining(signal)]);
});

it.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
])('ends at once at a second signal, %s', async (second, code) => {
  const world = createWorld();
  world.started.resolve();
  world.signals.emit('SIGTERM');
  await world.stopBegan.promise;
  expect(world.exits).toEqual([]);
  world.signals.emit(second);
  expect(world.exits).toEqual([code]);
  world.stopped.resolve();
  await world.exitCode;
});

it('stops what is still starting, and once more what got through meanwhile', async () => {
  const world = createWorld();
  world.signals.emit('SIGINT');
  await world.stopBegan.promise;
  world.stopped.resolve();
  world.started.resolve();
  expect(await world.exitCode).toBe(0);
  expect(world.stops()).toBe(2);
});

it('rejects with what kept it from starting', async () => {
  const world = createWorld();
  world.started.reject(new Error('address in use'));
  await expect(world.exitCode).rejects.toThrow('address in use');
});

it('gives up at the deadline, says so and ends with 1', async () => {
  const world = createWorld(1);
  world.started.resolve();
  world.signals.emit('SIGTERM');
  expect(await world.exitCode).toBe(1);
  expect(world.said.at(-1)).toContain('did not stop within TALLY_SHUTDOWN_TIMEOUT_MS (1 ms)');
});

it('ends with 1 when the stop fails, and says why without passwords', async () => {
  const world = createWorld();
  world.started.resolve();
  world.signals.emit('SIGTERM');
  world.stopped.reject(new Error('https://tally:secret@index:9200 is gone'));
  expect(await world.exitCode).toBe(1);
  expect(world.said.at(-1)).toContain('https://tally:***@index:9200 is gone');
});

it.each([
  ['throws', 'uncaught exception'],
  ['rejects', 'unhandled rejection'],
])('a process ends with 1 and one fatal line of JSON without passwords when something %s unnoticed', async (behaviour, msg) => {
  const script = new URL('../support/servers/lifecycle-process.ts', import.meta.url).pathname;
  const { code, stderr } = await runProgram(process.execPath, [script, behaviour]);
  expect(code).toBe(1);
  expect(JSON.parse(stderr)).toMatchObject({ level: 'fatal', msg, error: expect.stringContaining('https://tally:***@index:9200') });
  expect(stderr).not.toContain('secret');
});
