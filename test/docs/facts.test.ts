/** Numbers in sentences of pages are written from the code. */
import { describe, expect, it } from 'vitest';
import { withFacts } from './facts.ts';
import { textOf } from './pages.ts';

describe('a number in a sentence', () => {
  const README = textOf('README.md');

  it('is written from the code', () => {
    const wrong = README.replace('more than 1,000 documents', 'more than 7 documents');
    expect(wrong).not.toBe(README);
    expect(withFacts('README.md', wrong)).toBe(README);
  });

  it('must stand where the code is to write it', () => {
    expect(() => withFacts('README.md', 'It deletes nothing.')).toThrow('README.md has 0 times the sentence');
  });
});
