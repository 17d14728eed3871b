/** How much a search asks of a store, counted as OpenSearch counts it. */
import type { QueryWords } from '../documents/words.ts';
import type { Condition, Test } from './conditions.ts';

/** OpenSearch refuses a query of more than 1,024 clauses, those of its parts together. The rest is for the bounds of the search itself. */
export const WEIGHT_MAX = 1_000;

/** Of a part of a bucket: its bucket, and its prefix. */
export const CLAUSES_OF_PART = 2;

/** The clauses that conditions become at most. */
export function weightOf(conditions: readonly Condition[]): number {
  return conditions.reduce((sum, { anyOf }) => anyOf.reduce((weight, test) => weight + weightOfTest(test), sum), 0);
}

/** The clauses that words become. */
export function weightOfWords(words: QueryWords): number {
  return words.flat().reduce((sum, { whole, prefix }) => sum + whole.length + (prefix === undefined ? 0 : 1), 0);
}

function weightOfTest(test: Test): number {
  switch (test.kind) {
    case 'words':
      return weightOfWords(test.words);
    case 'contains':
      // one for each three characters in a row
      return test.text.length;
    case 'match': {
      const length = test.pattern.parts.reduce((sum, part) => sum + ('literal' in part ? part.literal.length : 1), 0);
      return test.pattern.anywhere ? 2 * length : length;
    }
    case 'bucket':
    case 'key':
    case 'from':
    case 'prefix':
    case 'etag':
    case 'class':
    case 'extension':
    case 'type':
    case 'tag':
    case 'meta':
    case 'size':
    case 'modified':
    case 'deleted':
      return 1;
  }
}
