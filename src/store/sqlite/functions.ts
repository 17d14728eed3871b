/** Functions of this program that statements call: what follows from a key is computed when a search reads it. */
import { LRUCache } from 'lru-cache';
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { z } from 'zod';
import { extensionsOf, nameOf } from '../../ordering/document.ts';
import { hasWords, wordsOf, type QueryWords } from '../../ordering/words.ts';
import { cachingLatest } from '../../base/latest.ts';

const formSchema = z.object({ whole: z.array(z.string()), prefix: z.string().exactOptional() });
const wordsSchema = z.array(z.array(formSchema)) satisfies z.ZodType<QueryWords>;

/** More than the tests of one statement. */
const QUERIES_MAX = 256;

/** Why a read ends whose caller no longer waits for it. */
export const ENDED = 'the caller no longer waits for this read';

/**
 * A condition that always holds. At one of a thousand ids it ends the statement if its caller no longer waits: Node's SQLite has no
 * other way to interrupt one.
 */
export function unlessEnded(id: string): string {
  return `(${id} & 1023 OR tally_unless_ended())`;
}

/** Adds the functions to a connection. `isEnded`: whether its caller no longer waits. */
export function addFunctions(database: DatabaseSync, isEnded: () => boolean = () => false): void {
  const options = { deterministic: true } as const;
  const queries = new LRUCache<string, QueryWords>({ max: QUERIES_MAX });
  // the tests of one statement ask for the same key one after another
  const wordsOfLatest = cachingLatest(wordsOf);

  function queryOf(text: string): QueryWords {
    const known = queries.get(text);
    if (known !== undefined) return known;
    const parsed = wordsSchema.parse(JSON.parse(text));
    queries.set(text, parsed);
    return parsed;
  }

  database.function('tally_unless_ended', () => {
    if (isEnded()) throw new Error(ENDED);
    return 1;
  });
  database.function('tally_has_extension', options, (key, extension) => {
    const { extension: last } = nameOf(textOf(key));
    return last !== undefined && extensionsOf(textOf(key), last).includes(textOf(extension)) ? 1 : 0;
  });
  database.function('tally_has_words', options, (key, query) => (hasWords(wordsOfLatest(textOf(key)), queryOf(textOf(query))) ? 1 : 0));
}

function textOf(value: SQLOutputValue): string {
  return typeof value === 'string' ? value : '';
}
