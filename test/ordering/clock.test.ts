import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clockOfMs, msOfClock } from '../../src/ordering/document.ts';
import { sequencerClock } from '../../src/ordering/hint.ts';

describe('the clock of a sequencer', () => {
  it.each([
    { sequencer: '0055AED6DCD90281E5', clock: 1_437_521_628_847_694, why: 'the real form, from the S3 user guide’s example' },
    { sequencer: '0055aed6dcd90281e5', clock: 1_437_521_628_847_694, why: 'lower case' },
    { sequencer: '8055AED6DCD90281E5', clock: 1_437_521_628_847_694, why: 'another first byte' },
    { sequencer: '55AED6DCD90281E5', clock: 1_437_521_628_847_694, why: 'the older form without a first byte' },
    { sequencer: '000000000000000000', clock: 0, why: 'zero' },
    { sequencer: '00FFFFFFFFFFFFFFFF', clock: 4_294_967_295_999_999, why: 'the largest' },
  ])('$sequencer is $clock µs ($why)', ({ sequencer, clock }) => {
    expect(sequencerClock(sequencer)).toBe(clock);
  });

  it.each([
    '',
    '0',
    'xyz',
    '0055AED6DCD90281E',
    '0055AED6DCD90281E5F',
    '0055AED6DCD90281G5',
    ' 0055AED6DCD90281E5',
    '0055AED6DCD90281E5\n',
  ])('%j is none', (sequencer) => {
    expect(sequencerClock(sequencer)).toBeUndefined();
  });

  it('is the exact whole part of the stated microseconds, a safe integer, and in the order of the sequencers', () => {
    const hex = (value: number) => value.toString(16).padStart(8, '0');
    const word = fc.integer({ min: 0, max: 0xffff_ffff });
    fc.assert(
      fc.property(word, word, word, word, (s1, f1, s2, f2) => {
        const [a, b] = [`00${hex(s1)}${hex(f1)}`, `00${hex(s2)}${hex(f2)}`];
        const clock = sequencerClock(a)!;
        expect(Number.isSafeInteger(clock)).toBe(true);
        expect(BigInt(clock)).toBe(BigInt(s1) * 1_000_000n + (BigInt(f1) * 1_000_000n) / 2n ** 32n);
        if (a < b) expect(clock).toBeLessThanOrEqual(sequencerClock(b)!);
      }),
    );
  });
});

it('moments and clocks come back from each other', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Date.UTC(2_200, 0) }), (ms) => {
      expect(msOfClock(clockOfMs(ms))).toBe(ms);
    }),
  );
});
