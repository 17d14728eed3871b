/** What was written to the index of a bucket lately, deletions included. New rows wait for a click, so that nothing moves while it is read. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { StoredObject } from '../../api/search.ts';
import { call } from './api.ts';
import { idOf } from './copied.ts';
import { CopyMenu, SelectCell, SelectionBar, useSelection } from './copy-actions.tsx';
import { useLoaded } from './load.ts';
import { Busy, Failure, Link, Live, Size, Text, Time } from './parts.tsx';
import { clauseOf, hasOthers, onlyValueIn, withClauses, withField } from './query-text.ts';
import { Overview } from './results.tsx';
import { choicesOf, type Search } from './search-place.ts';
import { countText, numberText } from './words.ts';

const READ_MS = 5_000;
/** The first rows; later ones are added above them. */
const FIRST = 200;
/** More rows are dropped at the end: who needs them searches for them. Also the longest page. */
const ROWS_MAX = 1_000;
/** Documents become visible a second after they were written, and in another order. */
const OVERLAP_MS = 30_000;

export function Changes({ search, buckets }: { readonly search: Search; readonly buckets: readonly string[] }) {
  const bucket = onlyValueIn(search.query, 'bucket');
  const prefix = onlyValueIn(search.query, 'prefix') ?? '';
  return (
    <section aria-labelledby="results-heading">
      <h2 id="results-heading">Changes</h2>
      {bucket === undefined ? (
        <>
          <p>Changes are those of one bucket. Choose it:</p>
          <ul>
            {buckets.map((name) => (
              <li key={name}>
                <Link
                  page="search"
                  choices={choicesOf({ ...search, query: withField(search.query, { name: 'bucket', operator: ':' }, [name]) })}
                  isRow
                >
                  <Text>{name}</Text>
                </Link>
              </li>
            ))}
          </ul>
        </>
      ) : (
        <>
          {hasOthers(search.query, ['bucket', 'prefix']) && (
            <p class="advice">Changes are those of a bucket and a prefix. Other filters do not apply to them.</p>
          )}
          <Overview search={{ ...search, query: clausesOf(bucket, prefix) }} />
          <Followed key={`${bucket} ${prefix}`} bucket={bucket} prefix={prefix} />
        </>
      )}
    </section>
  );
}

function clausesOf(bucket: string, prefix: string): string {
  const inPrefix = prefix === '' ? '' : clauseOf({ name: 'prefix', operator: ':' }, [prefix]);
  return withClauses(clauseOf({ name: 'bucket', operator: ':' }, [bucket]), inPrefix);
}

/** Identifies a change, and not only its object. */
const changeOf = (row: StoredObject): string => `${idOf(row)} ${row.indexed_at}`;

/** The rows before and the rows that were read now: of each object the latest change, the newest first. */
function merged(before: readonly StoredObject[], read: readonly StoredObject[]): readonly StoredObject[] {
  const latest = new Map(before.map((row) => [idOf(row), row]));
  for (const row of read) {
    const known = latest.get(idOf(row));
    if (known === undefined || known.indexed_at <= row.indexed_at) latest.set(idOf(row), row);
  }
  return [...latest.values()]
    .toSorted((a, b) => (a.indexed_at < b.indexed_at ? 1 : a.indexed_at > b.indexed_at ? -1 : 0))
    .slice(0, ROWS_MAX);
}

function Followed({ bucket, prefix }: { readonly bucket: string; readonly prefix: string }) {
  const known = useRef<readonly StoredObject[]>([]);
  const [shown, setShown] = useState<readonly StoredObject[]>();
  const selection = useSelection();
  async function read(signal: AbortSignal): Promise<readonly StoredObject[]> {
    const newest = known.current[0]?.indexed_at;
    const since = newest === undefined ? {} : { since: new Date(new Date(newest).getTime() - OVERLAP_MS).toISOString() };
    const limit = newest === undefined ? FIRST : ROWS_MAX;
    const { items } = await call('GET /v1/changes', { query: { bucket, ...(prefix !== '' && { prefix }), ...since, limit } }, signal);
    known.current = merged(known.current, items);
    return known.current;
  }
  const loaded = useLoaded(`changes ${JSON.stringify([bucket, prefix])}`, read, { everyMs: READ_MS });
  const { value, problem, atMs, reload } = loaded;
  useEffect(() => setShown((before) => before ?? value), [value]);
  if (value === undefined) return problem === undefined ? <Busy /> : <Failure problem={problem} retry={reload} />;
  const rows = shown ?? value;
  const seen = new Set(rows.map((row) => changeOf(row)));
  const news = value.filter((row) => !seen.has(changeOf(row))).length;
  return (
    <>
      <Live atMs={atMs} problem={problem} />
      <p role="status">
        {news > 0 && (
          <button type="button" class="small" onClick={() => setShown(value)}>
            {numberText(news)} new
          </button>
        )}
      </p>
      <SelectionBar rows={rows} selection={selection} />
      {rows.length === 0 ? (
        <p class="empty">Nothing was written or deleted within the last 24 hours.</p>
      ) : (
        <div class="scrolled" role="region" aria-label="Changes of the index" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <td />
                <th scope="col" class="key">
                  Key
                </th>
                <th scope="col">Change</th>
                <th scope="col">Indexed</th>
                <th scope="col">Size</th>
                <th scope="col">Copy</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={idOf(row)}>
                  <SelectCell of={row} selection={selection} />
                  <th scope="row" class="key">
                    <Link page="object" choices={{ bucket: row.bucket, key: row.key }} isRow>
                      <Text>{row.key}</Text>
                    </Link>
                  </th>
                  <td>
                    <span class={row.deleted ? 'state notable' : 'state good'}>{row.deleted ? 'deleted' : 'written'}</span>{' '}
                    <small>
                      <Text>{row.event_name ?? row.source}</Text>
                    </small>
                  </td>
                  <td>
                    <Time at={row.indexed_at} />
                  </td>
                  <td>{row.deleted ? '' : <Size bytes={row.size} />}</td>
                  <td>
                    <CopyMenu of={row} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="quiet">
        {countText(rows.length, 'change')}, an object with its latest one only; at most {numberText(ROWS_MAX)} are kept here.
      </p>
    </>
  );
}
