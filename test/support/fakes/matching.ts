/** Whether documents match what a search asks, in the plainest form: what both stores must answer. */
import type { QueryWords } from '../../../src/domain/documents/words.ts';

export function hasWords(words: readonly string[], query: QueryWords): boolean {
  return query.every((forms) =>
    forms.some(
      ({ whole, prefix }) =>
        whole.every((word) => words.includes(word)) && (prefix === undefined || words.some((word) => word.startsWith(prefix))),
    ),
  );
}
