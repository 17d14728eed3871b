import { execFileSync } from 'node:child_process';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { shellWord } from '../../src/base/commands.ts';
import { UNPRINTABLE } from '../../src/base/texts.ts';

/** Keys are UTF-8, in which there are no halves of surrogate pairs, and no argument has a NUL. */
const key = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom("'", '\\', '`', '$', '\n', '\u001b', '\u0085', '\u202e', '\u2028', 'a', '0'),
      fc.string({ unit: 'binary', maxLength: 1 }),
    ),
  })
  .filter((text) => !text.includes('\0') && text.isWellFormed());

it.each(['C', 'C.UTF-8'])(
  'bash reads every word as the text that it stands for, in the locale %s, and nothing in it is invisible',
  (LC_ALL) => {
    const texts = fc.sample(key, { numRuns: 500, seed: 7 });
    const words = texts.map(shellWord);
    expect(words.filter((word) => word.search(UNPRINTABLE) >= 0)).toEqual([]);
    const printed = execFileSync('bash', ['-c', words.map((word) => `printf '%s\\0' ${word}`).join('\n')], {
      env: { LC_ALL },
      encoding: 'utf8',
    });
    expect(printed.split('\0').slice(0, -1)).toEqual(texts);
  },
);
