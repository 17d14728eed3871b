import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { detached } from '../../src/ordering/detached.ts';
import { anyCharacter } from '../support/random/characters.ts';

it('is the same text, halves of surrogate pairs included', () => {
  fc.assert(fc.property(fc.string({ unit: anyCharacter }), (text) => detached(text) === text));
  for (const text of ['', 'a/é/日本/\u{1f600}', '\ud83d', 'a\ude00b']) expect(detached(text)).toBe(text);
});
