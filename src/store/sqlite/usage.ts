/** Sums in SQLite. Short synchronous calls read the rows' facts, other reads run between them, and the sums are computed here. */
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import type { QueryWords } from '../../ordering/words.ts';
import { objectAges, objectSizes, largestGroups, type UsageBy } from '../groups.rules.ts';
import type { UsageGroup, UsageQuery, UsageSums } from '../store.ts';
import {
  matchOf,
  withinSql,
  unlessEnded,
  beginningOf,
  boundsOf,
  bucketsOf,
  fromKey,
  indexOf,
  keyConditions,
  otherConditions,
  rangeConditions,
  rangesOf,
  sqlOf,
  untilKey,
  valuesOf,
} from './conditions.ts';
import type { SqliteReads } from './connection.ts';

const DAY_MS = 86_400_000;
/** How many index rows, or documents with the words, one call reads: some 5 ms. */
const INDEX_ROWS = 5_000;
const WORDS_ROWS = 1_000;
/** The most groups of one kind to keep until the largest are known: some 40 MB. A sum with more is too wide, like one that takes too long. */
const GROUPS_MAX = 200_000;

type Row = readonly SQLOutputValue[];

export async function sumUsage(reads: SqliteReads, query: UsageQuery): Promise<UsageSums | 'too-slow'> {
  const untilMs = performance.now() + query.timeLimitMs;
  const whole = { objects: 0, bytes: 0 };
  const kinds = query.by.map((by, at) => createGroups(by, at + 1, query));
  for await (const rows of query.words === undefined ? rowsInRanges(reads, query) : rowsWithWords(reads, query, query.words)) {
    for (const row of rows) {
      const bytes = numberOf(row[0]) ?? 0;
      whole.objects += 1;
      whole.bytes += bytes;
      for (const { add } of kinds) add(row, bytes);
    }
    if (performance.now() >= untilMs || kinds.some(({ isTooWide }) => isTooWide())) return 'too-slow';
  }
  return { ...whole, groups: kinds.map(({ largest }) => largest()) };
}

/** A row's columns: its size, and the name of its group of each kind. */
function columnsOf({ by }: UsageQuery): string {
  return ['size', ...by.map((each) => COLUMNS[each])].join(', ');
}

const COLUMNS: Readonly<Record<UsageBy, string>> = {
  folder: 'key',
  extension: 'extension',
  class: 'class',
  size: 'size',
  age: 'modified',
  bucket: 'bucket',
};

async function* rowsInRanges(reads: SqliteReads, query: UsageQuery): AsyncGenerator<readonly Row[]> {
  for (const { bucket, bounds } of bucketsOf(reads, query, false).flatMap((name) => rangesOf(name, query))) {
    for (let left = bounds, more = true; more;) {
      await letOthersRun();
      const { rows, last } = beginningOf(reads, query, { bucket, bounds: left }, { max: INDEX_ROWS });
      if (last === null) break;
      const all = [...rangeConditions({ bucket, bounds: untilKey(left, last, '<=') }, query), ...otherConditions(query)];
      yield rowsOf(reads, `SELECT ${columnsOf(query)} FROM ${indexOf(query)} AND ${sqlOf(all)}`, valuesOf(all));
      left = fromKey(left, last, '>');
      more = rows === INDEX_ROWS;
    }
  }
}

async function* rowsWithWords(reads: SqliteReads, query: UsageQuery, words: QueryWords): AsyncGenerator<readonly Row[]> {
  const conditions = [
    { sql: 'bucket IN (SELECT name FROM buckets WHERE ifnull(name = ?, 1))', values: [query.bucket ?? null] },
    ...keyConditions(query, boundsOf(query)),
    ...(query.within === undefined ? [] : [withinSql(query.within)]),
    ...otherConditions(query),
  ];
  const match = `SELECT rowid FROM object_words WHERE object_words MATCH ? AND ${unlessEnded('rowid')}`;
  const ids = rowsOf(reads, match, [matchOf(words)]).map(([id]) => id);
  // CROSS JOIN fixes the plan: without statistics, the planner would read a whole bucket for a rare word
  const sql = `SELECT ${columnsOf(query)} FROM (SELECT value AS found FROM json_each(?)) CROSS JOIN objects ON objects.id = found WHERE deleted = 0 AND ${sqlOf(conditions)}`;
  for (let from = 0; from < ids.length; from += WORDS_ROWS) {
    await letOthersRun();
    yield rowsOf(reads, sql, [JSON.stringify(ids.slice(from, from + WORDS_ROWS)), ...valuesOf(conditions)]);
  }
}

function rowsOf(reads: SqliteReads, sql: string, values: readonly SQLInputValue[]): readonly Row[] {
  return reads.use(({ statement }) => {
    const compiled = statement(sql);
    compiled.setReturnArrays(true);
    const rows: readonly unknown[] = compiled.all(...values);
    if (!areArrays(rows)) throw new TypeError('SQLite returned rows with names');
    return rows;
  });
}

/** Node's types lack setReturnArrays(). */
function areArrays(rows: readonly unknown[]): rows is readonly Row[] {
  return rows.every((row) => Array.isArray(row));
}

interface Groups {
  readonly add: (row: Row, bytes: number) => void;
  readonly isTooWide: () => boolean;
  /** The groups in the contract's order. */
  readonly largest: () => readonly UsageGroup[];
}

/** The groups of one kind, whose values are in a row's `column`. */
function createGroups(by: UsageBy, column: number, query: UsageQuery): Groups {
  const groups = new Map<string, { objects: number; bytes: number }>();
  const nameOf = namesOf(by, query);

  return {
    add(row, bytes) {
      const name = nameOf(row[column] ?? null);
      const group = groups.get(name);
      if (group === undefined) {
        groups.set(name, { objects: 1, bytes });
        return;
      }
      group.objects += 1;
      group.bytes += bytes;
    },
    isTooWide: () => groups.size > GROUPS_MAX,
    largest: () =>
      largestGroups(
        by,
        [...groups].map(([name, sums]) => ({ name, ...sums })),
        query.limit,
      ),
  };
}

/** The name of a value's group. */
function namesOf(by: UsageBy, { prefix = '', nowMs }: UsageQuery): (value: SQLOutputValue) => string {
  switch (by) {
    case 'folder':
      return (key) => nextFolder(String(key), prefix.length);
    case 'extension':
    case 'class':
    case 'bucket':
      return (value) => (value === null ? '' : String(value));
    case 'size':
      return (value) => objectSizes.find(({ bytes }) => value !== null && Number(value) < bytes)?.name ?? '';
    case 'age':
      return (value) => objectAges.find(({ days }) => value !== null && Number(value) >= nowMs - days * DAY_MS)?.name ?? '';
  }
}

/** A key's next folder after its first characters; empty for an object directly there. */
function nextFolder(key: string, from: number): string {
  return key.slice(0, key.indexOf('/', from) + 1);
}

function numberOf(value: SQLOutputValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
