import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseQuery } from '../../src/search/parse.rules.ts';
import { asksForDeleted, clauseOf, forDeleted, forLive, onlyValueIn, withClauses } from '../../src/panel/browser/query-text.ts';
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

  it('becomes a search for deleted objects without what these do not have, and back', () => {
    const text = 'bucket:media cat "exact" *.log ext:pdf size>1 -"not"';
    expect(forDeleted(text)).toBe('bucket:media "exact" *.log -"not" is:deleted');
    expect(forDeleted('bucket:media deleted<24h')).toBe('bucket:media deleted<24h');
    expect(forLive('bucket:media is:deleted deleted<24h "x y"')).toBe('bucket:media "x y"');
    expect([asksForDeleted('deleted<1d'), asksForDeleted('"is:deleted"'), asksForDeleted('deleted')]).toEqual([true, false, false]);
    expect(parsed(forDeleted(text))).toMatchObject({ deleted: true });
  });

  it('is not touched while a quote is open', () => {
    expect(forLive('"open is:deleted')).toBe('"open is:deleted');
  });
});
