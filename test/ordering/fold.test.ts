import { describe, expect, it } from 'vitest';
import { fold } from '../../src/ordering/words.ts';

describe('the folded form', () => {
  it('of every character is folded already', () => {
    // the planes behind have no letters
    const others: string[] = [];
    for (let point = 0; point <= 0x3_ff_ff; point += 1) {
      const character = String.fromCodePoint(point);
      const folded = fold(character);
      // most are their own fold, which the next fold would only repeat
      if (folded !== character && fold(folded) !== folded) others.push(point.toString(16));
    }
    expect(others).toEqual([]);
  });

  it('is the same whatever the case, the accents and the width', () => {
    for (const [text, folded] of [
      ['STRASSE', 'strasse'],
      ['Stra\u00dfe', 'strasse'],
      ['\u1e9e', 'ss'],
      ['\u0130stanbul', 'istanbul'],
      ['\u0131', '\u0131'],
      ['\u03a3\u03a3 \u03a3\u03c2', '\u03c3\u03c3 \u03c3\u03c3'],
      ['\uff21\uff22\uff23\uff11', 'abc1'],
      ['u\u0308\u00fc', 'uu'],
      ['\u2160\ufb03', 'iffi'],
    ]) {
      expect(fold(text!)).toBe(folded);
    }
  });
});
