import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createHeadQueue } from '../../src/observing/head-queue.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

const a = { bucket: 'a', region: 'us-east-1' };
const b = { bucket: 'b', region: 'us-east-1' };
const far = { bucket: 'far', region: 'eu-central-1' };

function setUp(concurrency = 8) {
  const clock = createFakeClock();
  const failing = new Set<string>();
  const failingRegions = new Set<string>();
  const heads = createHeadQueue({
    concurrency,
    clock,
    isFailing: ({ bucket, region }) => failing.has(bucket) || failingRegions.has(region),
    isRegionFailing: ({ region }) => failingRegions.has(region),
  });
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (target: typeof a, name: string, signal?: AbortSignal) =>
    heads.run(
      target,
      () =>
        new Promise<void>((resolve) => {
          running.push(name);
          ends.set(name, resolve);
        }),
      signal,
    );
  const askMany = (target: typeof a, count: number): void => {
    for (let index = 0; index < count; index += 1) void ask(target, `${target.bucket}-${index}`);
  };
  const of = (bucket: string) => running.filter((name) => name.startsWith(`${bucket}-`)).length;
  async function end(name: string): Promise<void> {
    ends.get(name)?.();
    await setImmediate();
  }
  return { clock, failing, failingRegions, running, ask, askMany, of, end };
}

describe('the requests to S3 about single objects', () => {
  it('of a bucket that is asked alone may have every place once its region has answered', async () => {
    const world = setUp();
    world.askMany(a, 20);
    // a region that hangs when the process starts leaves places for the first request of another
    expect(world.of('a')).toBe(6);
    void world.ask(far, 'far-first');
    expect(world.of('far')).toBe(1);
    await world.end('a-0');
    await world.end('far-first');
    await world.clock.advance(61_000);
    await world.end('a-1');
    expect(world.of('a')).toBe(2 + 8);
  });

  it('of one bucket have half of the places when another is asked, and of one region three quarters', async () => {
    const world = setUp();
    void world.ask(far, 'far-first');
    void world.ask(b, 'b-first');
    world.askMany(a, 20);
    expect(world.of('a')).toBe(4);
    world.askMany(b, 20);
    expect(world.of('a') + world.of('b')).toBe(6);
    world.askMany(far, 20);
    expect(world.of('far')).toBe(2);
    await world.end('far-first');
    expect(world.of('far')).toBe(3);
  });

  it('of all that fails have a quarter', () => {
    const world = setUp();
    world.failing.add('a').add('b');
    world.askMany(a, 20);
    world.askMany(b, 20);
    world.askMany(far, 3);
    expect(world.of('a') + world.of('b')).toBe(2);
    expect(world.of('far')).toBe(3);
  });

  it('are served in turn, bucket by bucket', async () => {
    const world = setUp(1);
    world.askMany(a, 3);
    world.askMany(b, 3);
    for (let count = 0; count < 6; count += 1) {
      await world.end(world.running.at(-1) ?? '');
    }
    expect(world.running).toEqual(['a-0', 'a-1', 'b-0', 'a-2', 'b-1', 'b-2']);
  });

  it('that are aborted while they wait take no place', async () => {
    const world = setUp(1);
    world.askMany(a, 1);
    const stopping = new AbortController();
    const waiting = world.ask(b, 'b-0', stopping.signal).catch((error: unknown) => error);
    stopping.abort(new Error('too late'));
    expect(await waiting).toMatchObject({ message: 'too late' });
    await world.end('a-0');
    world.askMany(far, 1);
    expect(world.running).toEqual(['a-0', 'far-0']);
  });

  it('are all served when every bucket has failed and some come later', async () => {
    const world = setUp(4);
    world.failing.add('a');
    world.askMany(a, 30);
    for (let count = 0; count < 30; count += 1) {
      await world.end(`a-${count}`);
    }
    expect(world.of('a')).toBe(30);
  });

  it('of a region that fails wait for no place: what waits already and what comes later is refused, and other regions are served', async () => {
    const world = setUp(4);
    const refused: string[] = [];
    const ask = (target: typeof a, name: string) => void world.ask(target, name).catch(() => refused.push(name));
    for (const [target, name] of [
      [far, 'far'],
      [b, 'b-0'],
      [b, 'b-1'],
      [a, 'a-0'],
    ] as const)
      ask(target, name);
    for (const name of ['a-1', 'a-2']) ask(a, name);
    ask(far, 'far-waits');
    world.failingRegions.add('us-east-1');
    await world.end('b-0');
    expect(world.running.at(-1)).toBe('far-waits');
    expect(refused).toEqual(['a-1', 'a-2']);
    await world.end('far');
    // a quarter of the places is for what fails
    ask(b, 'b-late');
    ask(a, 'a-late');
    await setImmediate();
    expect(world.running.at(-1)).toBe('b-late');
    expect(refused).toEqual(['a-1', 'a-2', 'a-late']);
  });
});
