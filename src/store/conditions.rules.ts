/** A search's conditions on documents, all of which must hold. Both stores give the same answer for the same conditions. */
import type { QueryWords } from '../base/words.ts';
import type { Pattern } from './pattern.rules.ts';

/**
 * One test of a document. It fails if the document lacks the field. The texts of `contains` and of patterns are already folded;
 * `from` is inclusive and `before` exclusive, in milliseconds since 1970.
 */
export type Test =
  | { readonly kind: 'words'; readonly words: QueryWords }
  | { readonly kind: 'contains'; readonly text: string }
  | { readonly kind: 'match'; readonly pattern: Pattern }
  | { readonly kind: 'bucket' | 'key' | 'prefix' | 'etag' | 'class'; readonly value: string }
  /** This key and all after it, in the order of their UTF-8 bytes. */
  | { readonly kind: 'from'; readonly value: string }
  /** In lower case, without the leading dot. With a dot inside, such as `tar.gz`, the name's last two extensions. */
  | { readonly kind: 'extension'; readonly value: string }
  /** `family`: every type that begins with the value, which ends in a slash. */
  | { readonly kind: 'type'; readonly value: string; readonly family: boolean }
  /** Without a value, any value matches. Both are compared as NAME=VALUE, so a name also matches longer names that continue with `=`. */
  | { readonly kind: 'tag' | 'meta'; readonly name: string; readonly value?: string }
  | { readonly kind: 'size'; readonly min?: number; readonly max?: number }
  | { readonly kind: 'modified' | 'deleted'; readonly from?: number; readonly before?: number };

/** Holds if one of the tests succeeds or, negated, if none does. */
export interface Condition {
  readonly anyOf: readonly Test[];
  readonly negated: boolean;
}

/** Fields by which results can be sorted. */
export const sortFields = ['key', 'size', 'last_modified', 'deleted_at'] as const;
export type SortField = (typeof sortFields)[number];
export const sortOrders = ['asc', 'desc'] as const;
export type SortOrder = (typeof sortOrders)[number];

/** A condition with one test, which must succeed. */
export function holds(test: Test): Condition {
  return { anyOf: [test], negated: false };
}

/** OpenSearch refuses queries with more than 1,024 clauses in all. The rest is for the bounds of the search itself. */
export const WEIGHT_MAX = 1_000;

/** The clauses of a bucket part: its bucket and its prefix. */
export const CLAUSES_OF_PART = 2;

/** The most clauses that the conditions can become. */
export function weightOf(conditions: readonly Condition[]): number {
  return conditions.reduce((sum, { anyOf }) => anyOf.reduce((weight, test) => weight + weightOfTest(test), sum), 0);
}

/** The number of clauses that words become. */
export function weightOfWords(words: QueryWords): number {
  return words.flat().reduce((sum, { whole, prefix }) => sum + whole.length + (prefix === undefined ? 0 : 1), 0);
}

function weightOfTest(test: Test): number {
  switch (test.kind) {
    case 'words':
      return weightOfWords(test.words);
    case 'contains':
      // one for each run of three characters
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
