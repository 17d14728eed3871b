import { expect, it } from 'vitest';
import { ageOfText, sizeText } from '../../src/base/texts.ts';

it.each([
  [undefined, undefined],
  [0, '0 B'],
  [999, '999 B'],
  [1_023, '1023 B'],
  [1_024, '1 KiB'],
  [1_536, '1.5 KiB'],
  [10_239, '10 KiB'],
  [1_048_575, '1 MiB'],
  [5_000_000_000, '4.7 GiB'],
  [48.8 * 1_024 ** 4, '49 TiB'],
  [2 ** 55, '32 PiB'],
])('a size of %s bytes reads %s', (sizeBytes, text) => {
  expect(sizeText(sizeBytes)).toBe(text);
});

it.each([
  [0, '0 s'],
  [-5_000, '0 s'],
  [119_999, '119 s'],
  [120_000, '2 min'],
  [7_200_000, '2 h'],
  [172_800_000, '2 d'],
  [86_400_000 * 412, '412 d'],
])('a moment %s ms ago reads %s', (agoMs, text) => {
  const nowMs = Date.UTC(2026, 0, 2);
  expect(ageOfText(new Date(nowMs - agoMs).toISOString(), nowMs)).toBe(text);
});

it('a moment that is not known has no age', () => {
  expect(ageOfText(undefined, 0)).toBeUndefined();
  expect(ageOfText('yesterday', 0)).toBeUndefined();
});
