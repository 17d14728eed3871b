import { describe, expect, it } from 'vitest';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createCounter } from '../../src/identity/authenticate-key.ts';

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
});
