/** Functions of this program that statements call: what follows from a key is computed when a search reads it. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { z } from 'zod';
import { extensionsOf, nameOf } from '../../domain/documents/document.ts';
import { fold } from '../../domain/documents/fold.ts';
import { hasWords, wordsOf, type QueryWords } from '../../domain/documents/words.ts';

const formSchema = z.object({ whole: z.array(z.string()), prefix: z.string().exactOptional() });
const wordsSchema = z.array(z.array(formSchema)) satisfies z.ZodType<QueryWords>;

/** Adds the functions to a connection. */
export function addFunctions(database: DatabaseSync): void {
  const options = { deterministic: true } as const;
  let latest = '';
  let words: QueryWords = [];

  database.function('tally_fold', options, (key) => fold(textOf(key)));
  database.function('tally_has_extension', options, (key, extension) => {
    const { extension: last } = nameOf(textOf(key));
    return last !== undefined && extensionsOf(textOf(key), last).includes(textOf(extension)) ? 1 : 0;
  });
  database.function('tally_has_words', options, (key, query) => {
    // one statement calls it for many keys with the same query
    if (query !== latest) {
      words = wordsSchema.parse(JSON.parse(textOf(query)));
      latest = textOf(query);
    }
    return hasWords(wordsOf(textOf(key)), words) ? 1 : 0;
  });
}

function textOf(value: SQLOutputValue): string {
  return typeof value === 'string' ? value : '';
}
