import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyCharacter } from '../support/random/characters.ts';
import { filterOf } from '../../src/search/search.ts';

it.each([
  ['bucket:media', ['media'], ['media']],
  ['bucket:media,logs', ['media', 'logs'], ['media', 'logs']],
  // its documents are not among the results, so it does not matter how far they can be relied on
  ['-bucket:media', ['media'], []],
  ['bucket:media -bucket:logs report', ['media', 'logs'], ['media']],
])('a search for %s names the buckets %j, and finds documents of %j', (query, buckets, foundIn) => {
  expect(filterOf({ query }, 0)).toMatchObject({ buckets, foundIn });
});

it('each parameter asks the same as its clause, before those of the query', () => {
  const inQuotes = (text: string): string => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  const text = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 8 });
  const beside = fc.constantFrom('', '*.c', 'size>1', 'prefix:y/ *.c', '-key:k');
  fc.assert(
    fc.property(text, text, beside, (key, prefix, query) => {
      const asked = ({ filter, buckets, foundIn }: ReturnType<typeof filterOf>) => ({ filter, buckets, foundIn });
      const clauses = `bucket:media key:${inQuotes(key)} prefix:${inQuotes(prefix)} ext:gz`;
      const request = { bucket: 'media', key, prefix, extension: 'gz', query };
      expect(asked(filterOf(request, 0))).toEqual(asked(filterOf({ query: `${clauses} ${query}` }, 0)));
    }),
  );
});
