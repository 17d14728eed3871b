import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { filterFields } from '../../src/registry/contract/search.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { anyCharacter } from '../support/random/characters.ts';
import { filterOf, type FilterRequest } from '../../src/search/search.ts';

it.each([
  ['bucket:media', ['media'], ['media']],
  ['bucket:media,logs', ['media', 'logs'], ['media', 'logs']],
  // its documents are not among the results, so it does not matter how far they can be relied on
  ['-bucket:media', ['media'], []],
  ['bucket:media -bucket:logs report', ['media', 'logs'], ['media']],
])('a search for %s names the buckets %j, and finds documents of %j', (query, buckets, foundIn) => {
  expect(filterOf({ query }, 0)).toMatchObject({ buckets, foundIn });
});

const inQuotes = (text: string): string => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
/** A text without anything that ends a clause. */
const plain = fc.string({ unit: fc.constantFrom(...Array.from('abcÜ15/.=-_*?')), minLength: 1, maxLength: 8 });
const anyText = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 8 });
const word = fc.string({ unit: fc.constantFrom(...Array.from('abcÜ15')), minLength: 1, maxLength: 8 });
const moment = fc.constantFrom('2026-09-01', '2026-10-25', '2026-09-01T08:00:00Z', '2026-09-01T08:00:00.123Z', '2026-02-30');
const name = fc.constantFrom('media', 'logs-2026');

/** Values of a parameter, each with the clause that means the same. */
function twin<Value>(values: fc.Arbitrary<Value>, clauseOf: (value: Value) => string): fc.Arbitrary<readonly [unknown, clause: string]> {
  return values.map((value) => [value, clauseOf(value)]);
}

/** Each parameter that narrows a search. */
const twins: Readonly<Record<Exclude<keyof typeof filterFields, 'query' | 'tz'>, ReturnType<typeof twin>>> = {
  bucket: twin(name, (text) => `bucket:${text}`),
  key: twin(anyText, (text) => `key:${inQuotes(text)}`),
  prefix: twin(anyText, (text) => `prefix:${inQuotes(text)}`),
  q: twin(word, (text) => text),
  contains: twin(anyText, inQuotes),
  match: twin(
    plain.map((text) => `a*${text}`),
    (text) => text,
  ),
  extension: twin(plain, (text) => `ext:${text}`),
  size_min: twin(fc.nat(), (bytes) => `size>=${bytes}`),
  size_max: twin(fc.nat(), (bytes) => `size<=${bytes}`),
  modified_after: twin(moment, (text) => `modified>=${text}`),
  modified_before: twin(moment, (text) => `modified<${text}`),
  content_type: twin(fc.oneof(plain, fc.constant('image/*')), (text) => `type:${text}`),
  storage_class: twin(plain, (text) => `class:${text}`),
  etag: twin(plain, (text) => `etag:${text}`),
  tag: twin(fc.array(plain, { minLength: 1, maxLength: 2 }), (texts) => texts.map((text) => `tag:${text}`).join(' ')),
  meta: twin(plain, (text) => `meta:${text}`),
  deleted: twin(fc.constant('true'), () => 'is:deleted'),
  deleted_after: twin(moment, (text) => `deleted>=${text}`),
  deleted_before: twin(moment, (text) => `deleted<${text}`),
};

/** What the store is asked, or that it is a mistake. */
function askedBy(request: FilterRequest): unknown {
  try {
    const { filter, buckets, foundIn, relative } = filterOf(request, Date.UTC(2026, 10, 22));
    return { filter, buckets, foundIn, relative };
  } catch (error) {
    if (error instanceof RequestError) return error.code;
    throw error;
  }
}

it.each(Object.entries(twins))(
  'asks the same by the parameter %s and by its clause, alone and beside other clauses',
  (parameter, cases) => {
    const beside = fc.constantFrom('', '*.c', '*x*', 'size>1', 'tag:a -meta:b', 'is:deleted', 'prefix:y/ *.c', '-key:k');
    const zone = fc.constantFrom('UTC', 'Europe/Berlin', '-03:30');
    fc.assert(
      fc.property(cases, beside, zone, ([value, clause], query, tz) => {
        const request: FilterRequest = { [parameter]: value };
        if (request.q !== undefined) expect(askedBy(request)).toEqual(askedBy({ query: clause }));
        // the parameters come first
        else expect(askedBy({ ...request, query, tz })).toEqual(askedBy({ query: `${clause} ${query}`, tz }));
      }),
      { numRuns: 200 },
    );
  },
);
