import { expect, it } from 'vitest';
import { createEnrichBreaker } from '../../../src/pipeline/looks/enrich-breaker.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

function setUp() {
  const clock = createFakeClock();
  return { clock, breaker: createEnrichBreaker({ clock }) };
}

function fail({ breaker }: ReturnType<typeof setUp>, bucket: string, times: number): void {
  for (let time = 0; time < times; time += 1) breaker.failed(bucket);
}

it('pauses a bucket after five failures in a row, and no other', () => {
  const world = setUp();
  fail(world, 'b', 4);
  expect([world.breaker.isPaused('b'), world.breaker.admits('b')]).toEqual([false, true]);
  fail(world, 'b', 1);
  expect([world.breaker.isPaused('b'), world.breaker.admits('b')]).toEqual([true, false]);
  expect([world.breaker.isPaused('c'), world.breaker.admits('c')]).toEqual([false, true]);
});

it('counts only failures in a row', () => {
  const world = setUp();
  fail(world, 'b', 4);
  world.breaker.answered('b');
  fail(world, 'b', 4);
  expect(world.breaker.admits('b')).toBe(true);
});

it('lets one try after five seconds, and the rest once it was answered', async () => {
  const world = setUp();
  fail(world, 'b', 5);
  await world.clock.advance(4_999);
  expect(world.breaker.admits('b')).toBe(false);
  await world.clock.advance(1);
  expect(world.breaker.isPaused('b')).toBe(false);
  expect([world.breaker.admits('b'), world.breaker.admits('b')]).toEqual([true, false]);
  world.breaker.failed('b');
  await world.clock.advance(4_999);
  expect(world.breaker.admits('b')).toBe(false);
  await world.clock.advance(1);
  expect(world.breaker.admits('b')).toBe(true);
  world.breaker.answered('b');
  expect([world.breaker.isPaused('b'), world.breaker.admits('b'), world.breaker.admits('b')]).toEqual([false, true, true]);
});
