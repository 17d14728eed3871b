import { expect, it } from 'vitest';
import { textOf } from './pages.ts';

it('README.md has at most 6,000 bytes: it says what Tally is, and docs/ says the rest', () => {
  expect(Buffer.byteLength(textOf('README.md'))).toBeLessThanOrEqual(6_000);
});
