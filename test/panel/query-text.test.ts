import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseQuery } from '../../src/search/parse.rules.ts';
import {
  asksForDeleted,
  clauseOf,
  forDeleted,
  forLive,
  onlyValueIn,
  textIn,
  withClauses,
  withinWords,
} from '../../src/panel/browser/query-text.ts';
import { anyCharacter } from '../support/random/characters.ts';

const parsed = (text: string) => parseQuery(text, { nowMs: 0, timeZone: 'UTC' });

it('a clause that is written into the box is read again as it was written, by the box and by the grammar, whatever it contains', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, minLength: 1, maxLength: 40 }), (prefix) => {
      const text = withClauses('cat', clauseOf('prefix', prefix));
      expect(onlyValueIn(text, 'prefix')).toBe(prefix);
      expect(parsed(text)).toMatchObject({ clauses: [{ field: 'words' }, { field: 'prefix', values: [prefix], negated: false }] });
    }),
  );
});

describe('the text of the box', () => {
  it('has one value of a field only if no other is possible', () => {
    expect(onlyValueIn('bucket:a cat', 'bucket')).toBe('a');
    for (const text of ['cat', 'bucket:a,b', 'bucket:a bucket:b', '-bucket:a', '"bucket:a"'])
      expect(onlyValueIn(text, 'bucket'), text).toBeUndefined();
  });

  it('becomes a search for deleted objects, which have no words, and back', () => {
    expect(forDeleted('bucket:media cat "exact" *.log -"not"')).toBe('bucket:media *cat* "exact" *.log -"not" is:deleted');
    expect(forDeleted('bucket:media deleted<24h')).toBe('bucket:media deleted<24h');
    expect(forLive('bucket:media is:deleted deleted<24h "x y"')).toBe('bucket:media "x y"');
    expect([asksForDeleted('deleted<1d'), asksForDeleted('"is:deleted"'), asksForDeleted('deleted')]).toEqual([true, false, false]);
    expect(parsed(forDeleted('cat "exact"'))).toMatchObject({ deleted: true });
  });

  it('Bug: finds what words are within, and what may be a key', () => {
    const finds = (text: string) => parsed(withinWords(text));
    expect(withinWords('bucket:a  port-55,b/c "x y" *.pdf -no ab')).toBe('bucket:a  *port-55*,*b/c* "x y" *.pdf -no ab');
    expect(finds('port-55')).toMatchObject({ clauses: [{ field: 'match' }] });
    for (const text of ['ext:pdf', '"port-55"', 'ab']) expect(withinWords(text)).toBe(text);
    expect(['a/b c.txt', '"a/b c.txt"', 'bucket:x a/b', 'ext:pdf'].map(textIn)).toEqual(['a/b c.txt', 'a/b c.txt', 'a/b', '']);
  });

  it('is not touched while a quote is open', () => {
    expect(forLive('"open is:deleted')).toBe('"open is:deleted');
  });
});
