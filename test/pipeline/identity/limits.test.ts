import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAbuseLimits, createCounter } from '../../../src/pipeline/identity/limits.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

describe('a counter', () => {
  it('permits as many in each window as it says, each name apart', async () => {
    const clock = createFakeClock();
    const count = createCounter(clock, { windowMs: 1_000, countMax: 3 });
    expect(['a', 'a', 'b', 'a', 'a', 'b'].map(count)).toEqual([undefined, undefined, undefined, undefined, 1_000, undefined]);
    await clock.advance(999);
    expect(count('a')).toBe(1);
    await clock.advance(1);
    expect(['a', 'a', 'a', 'a'].map(count)).toEqual([undefined, undefined, undefined, 1_000]);
  });

  it('never permits more than twice its number in any span as long as a window', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 900 }), { maxLength: 60 }), async (pauses) => {
        const clock = createFakeClock();
        const count = createCounter(clock, { windowMs: 1_000, countMax: 5 });
        const permitted: number[] = [];
        for (const pauseMs of pauses) {
          await clock.advance(pauseMs);
          if (count('a') === undefined) permitted.push(clock.monotonicMs());
        }
        for (const atMs of permitted)
          expect(permitted.filter((other) => other >= atMs && other < atMs + 1_000).length).toBeLessThanOrEqual(10);
      }),
    );
  });

  it('forgets the oldest window when its table is full', () => {
    const count = createCounter(createFakeClock(), { windowMs: 1_000, countMax: 1, tableMax: 3 });
    for (const name of ['a', 'b', 'c', 'd']) count(name);
    // `a` was forgotten, which pushes `b` out; `c` and `d` are known
    expect(['a', 'd', 'c'].map((name) => count(name) === undefined)).toEqual([true, false, false]);
    expect(count('b')).toBe(undefined);
  });
});

describe('the limits of a process', () => {
  it('refuse an address after 20 failures a minute, and tell when it may try again', async () => {
    const clock = createFakeClock();
    const { failed } = createAbuseLimits({ clock });
    for (let count = 0; count < 20; count += 1) failed('10.0.0.7');
    await clock.advance(45_000);
    expect(() => failed('::ffff:10.0.0.7')).toThrow(
      expect.objectContaining({
        code: 'request.too-many-failures',
        message: expect.stringContaining('try again in 15 s'),
        extra: { retry_after_s: 15 },
      }),
    );
    failed('10.0.0.8');
    await clock.advance(15_000);
    failed('10.0.0.7');
  });

  it('count addresses of one /64 as one', () => {
    const { failed } = createAbuseLimits({ clock: createFakeClock() });
    for (let count = 0; count < 20; count += 1) failed(`2001:db8:1:2::${count.toString(16)}`);
    expect(() => failed('2001:db8:1:2:ffff::')).toThrow(expect.objectContaining({ code: 'request.too-many-failures' }));
    failed('2001:db8:1:3::');
  });

  it('do not count callers without an address', () => {
    const { failed } = createAbuseLimits({ clock: createFakeClock() });
    for (let count = 0; count < 100; count += 1) failed(undefined);
  });

  it('keep 10,000 addresses', () => {
    const { failed } = createAbuseLimits({ clock: createFakeClock() });
    const address = (number: number) => `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
    for (let count = 0; count < 20; count += 1) failed(address(0));
    for (let number = 1; number < 10_000; number += 1) failed(address(number));
    expect(() => failed(address(0))).toThrow();
    failed(address(10_000));
    failed(address(0));
  });
});
