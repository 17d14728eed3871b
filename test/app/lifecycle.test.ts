import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { runUntilStopped } from '../../src/app/lifecycle.ts';

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

it('ends with 0 when the start fails because it was stopped', async () => {
  const world = createWorld();
  world.signals.emit('SIGINT');
  await world.stopBegan.promise;
  world.started.reject(new Error('the process stops'));
  world.stopped.resolve();
  expect(await world.exitCode).toBe(0);
});

it('ends with 1 at the deadline when a start that was interrupted never ends', async () => {
  const world = createWorld(1);
  world.signals.emit('SIGTERM');
  world.stopped.resolve();
  expect(await world.exitCode).toBe(1);
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

describe('a real process', () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  /** Starts one, and waits for the first word of its part. */
  async function spawnFixture(behaviour: string, shutdownTimeoutMs = 60_000) {
    const script = new URL('../support/servers/lifecycle-process.ts', import.meta.url).pathname;
    const child = spawn(process.execPath, [script, behaviour, String(shutdownTimeoutMs)], { stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    const stderr: string[] = [];
    child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.push(text));
    const lines = createInterface({ input: child.stdout });
    const closed = once(child, 'close');
    await once(lines, 'line');
    return {
      child,
      line: () => once(lines, 'line'),
      exit: async () => {
        const [code, signal] = await closed;
        return { code: code as unknown, signal: signal as unknown, stderr: stderr.join('') };
      },
    };
  }

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 after the first %s', async (signal) => {
    const { child, exit } = await spawnFixture('stops');
    child.kill(signal);
    expect(await exit()).toMatchObject({ code: 0, signal: null });
  });

  it('ends with 130 at a second SIGINT while it stops', async () => {
    const { child, line, exit } = await spawnFixture('hangs');
    child.kill('SIGTERM');
    await line();
    child.kill('SIGINT');
    expect(await exit()).toMatchObject({ code: 130, signal: null });
  });

  it('ends with 1 when the stop takes longer than it may', async () => {
    const { child, exit } = await spawnFixture('hangs', 50);
    child.kill('SIGTERM');
    const { code, stderr } = await exit();
    expect(code).toBe(1);
    expect(stderr).toContain('did not stop within TALLY_SHUTDOWN_TIMEOUT_MS (50 ms)');
  });

  it.each([
    ['throws', 'uncaught exception'],
    ['rejects', 'unhandled rejection'],
  ])('ends with 1 and one fatal line of JSON without passwords when something %s unnoticed', async (behaviour, msg) => {
    const { exit } = await spawnFixture(behaviour);
    const { code, stderr } = await exit();
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({ level: 'fatal', msg, error: expect.stringContaining('https://tally:***@index:9200') });
    expect(stderr).not.toContain('secret');
  });
});
