/** Search: one box, and what it finds as a list, by folder, or as it changes. All of it is in the address, so that it is a link. */
import { useCallback, useEffect, useRef, useState, useLayoutEffect } from 'preact/hooks';
import { useBuckets } from './all-buckets.ts';
import { type Problem, call, type AnswerTo } from './api.ts';
import { Changes } from './changes.tsx';
import { useObserved } from './observed.ts';
import { Link, Text } from './parts.tsx';
import { replacePlace, type Choices, go, hrefOf, leftByOf, place } from './place.ts';
import { forDeleted, forLive, withClauses } from './query-text.ts';
import { Results } from './results.tsx';
import { isDeletedSearch, mistakeOf, SearchBox } from './search-box.tsx';
import { choicesOf, requestOf, searchHref, searchOf, type Search, opening, type OpenObject } from './search-place.ts';
import { zone, zoneName } from './words.ts';
import { ObjectView } from './object.tsx';
import { useLoaded } from './load.ts';
import { groupNames, groupText } from './group-name.tsx';

export function SearchPage({ choices }: { readonly choices: Choices }) {
  const search = searchOf(choices);
  const key = JSON.stringify(requestOf(search));
  // names beyond the largest page are typed
  const buckets = useBuckets().value?.items.map(({ bucket }) => bucket) ?? [];
  const [read, setRead] = useState<{ readonly key: string; readonly problem: Problem | undefined; readonly isThere: boolean }>();
  const again = useRef<() => void>(() => undefined);
  const onProblem = useCallback(
    (problem: Problem | undefined, reload: () => void, isThere: boolean) => {
      again.current = reload;
      setRead({ key, problem, isThere });
    },
    [key],
  );
  useZone(search);
  const mistake = read?.key === key ? mistakeOf(read.problem) : undefined;
  return (
    <>
      <h1 class="unseen">Search</h1>
      <SearchBox key={search.query} search={search} buckets={buckets} mistake={mistake} onAgain={() => again.current()} />
      <div class={search.open === undefined ? 'search-body' : 'search-body opened'}>
        <div class="beside">
          <Ways search={search} />
          {search.view === 'list' && <Facets search={search} isWanted={read?.key === key && read.isThere} />}
        </div>
        <Found search={search} buckets={buckets} onProblem={onProblem} />
        {search.open !== undefined && <Drawer key={`${search.open.bucket} ${search.open.key}`} search={search} of={search.open} />}
      </div>
    </>
  );
}

interface FoundProps {
  readonly search: Search;
  readonly buckets: readonly string[];
  readonly onProblem: (problem: Problem | undefined, again: () => void, isThere: boolean) => void;
}

function Found({ search, buckets, onProblem }: FoundProps) {
  switch (search.view) {
    case 'list':
      return <Results search={search} label={isDeletedSearch(search) ? 'Deleted objects' : 'Objects'} onProblem={onProblem} />;
    // it is a separate page
    case 'folders':
      return null;
    case 'changes':
      return <Changes search={search} buckets={buckets} />;
  }
}

/** The switch of the zone rules the dates of the search that is shown as well. */
function useZone(search: Search): void {
  const inZone = useObserved(zone);
  const before = useRef(inZone);
  useEffect(() => {
    if (before.current !== inZone && search.tz !== zoneName()) replacePlace(searchHref(search));
    before.current = inZone;
  }, [inZone]);
}

/** The same search in other ways. */
function Ways({ search }: { readonly search: Search }) {
  const isDeleted = isDeletedSearch(search);
  const live: Search = { ...search, query: forLive(search.query), tz: zoneName(), open: undefined };
  const ways: readonly (readonly [name: string, to: Search, isCurrent: boolean])[] = [
    ['Objects', { ...live, view: 'list' }, search.view === 'list' && !isDeleted],
    ['Changes', { ...live, view: 'changes' }, search.view === 'changes'],
    ['Deleted', { ...live, view: 'list', query: forDeleted(search.query) }, search.view === 'list' && isDeleted],
  ];
  return (
    <nav aria-label="Ways to look at it">
      <ul class="switch">
        {ways.map(([name, to, isCurrent]) => (
          <li key={name}>
            <Link page="search" choices={choicesOf(to)} isCurrent={isCurrent}>
              {name}
            </Link>
          </li>
        ))}
        <li>
          <Link page="usage" choices={choicesOf({ ...live, view: 'folders' })}>
            Usage
          </Link>
        </li>
      </ul>
    </nav>
  );
}

/** One object beside the results. Its address is that of the search with the object, so that it is a link too. */

function Drawer({ search, of: { bucket, key } }: { readonly search: Search; readonly of: OpenObject }) {
  const drawer = useRef<HTMLElement>(null);
  const closed = hrefOf('search', opening(search));
  useLayoutEffect(() => drawer.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    function press(event: KeyboardEvent): void {
      const isBusy = document.querySelector('dialog[open], :popover-open') !== null;
      if (event.key === 'Escape' && !event.defaultPrevented && !isBusy) close();
    }
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [closed]);
  /** The row that opened it has the focus again. */
  function close(): void {
    const opened = place.read().href;
    go(closed, true);
    requestAnimationFrame(() => {
      const row = [...document.querySelectorAll<HTMLElement>('a[data-row]')].find((each) =>
        [opened, leftByOf(closed)].includes(each.getAttribute('href') ?? ''),
      );
      row?.focus({ preventScroll: true });
    });
  }
  return (
    <aside ref={drawer} class="drawer" tabIndex={-1} aria-labelledby="drawer-heading">
      <header>
        <h2 id="drawer-heading" class="key">
          <Text>{key}</Text>
        </h2>
        <button type="button" class="plain outline small" aria-label="Close" onClick={close}>
          ✕
        </button>
      </header>
      <ObjectView bucket={bucket} name={key} />
      <p>
        <Link page="object" choices={{ bucket, key }}>
          Open as a page
        </Link>
      </p>
    </aside>
  );
}

/** The results of a search in groups, at its left: each adds the filter that narrows the search to it. */

/** More groups are found by typing. */
const GROUPS_MAX = 6;

/** As in the style sheet: there they are above the results, and must not hide them. */
const narrow = matchMedia('(max-width: 800px)');

const kinds = ['bucket', 'extension', 'class', 'size', 'age'] as const;

/** `isWanted`: the results are there. The sums read everything that matches, and must not delay them. */
function Facets({ search, isWanted }: { readonly search: Search; readonly isWanted: boolean }) {
  const { query, tz } = requestOf(search);
  const request = { ...(query !== undefined && { query }), ...(tz !== undefined && { tz }), by: [...kinds], limit: GROUPS_MAX };
  const { value, problem } = useLoaded(
    `facets ${JSON.stringify(request)}`,
    (signal) => call('GET /v1/usage', { query: request }, signal),
    // deleted objects have none of these
    { isWanted: isWanted && !isDeletedSearch(search) },
  );
  if (problem !== undefined) return <p class="quiet">– {problem.message}</p>;
  if (value === undefined) return null;
  const facets = value.by.map((grouping) => <Facet key={grouping.by} of={grouping} search={search} />);
  return (
    <section aria-label="Narrow the search" class="facets">
      {narrow.matches ? (
        <details>
          <summary>Narrow the search</summary>
          {facets}
        </details>
      ) : (
        facets
      )}
    </section>
  );
}

interface FacetProps {
  readonly of: AnswerTo<'GET /v1/usage'>['by'][number];
  readonly search: Search;
}

/** One group is no choice. */
function Facet({ of: { by, groups }, search }: FacetProps) {
  const shown = groups.filter(({ filter, objects }) => filter !== undefined && objects > 0);
  if (shown.length < 2) return null;
  return (
    <>
      <h2>{groupNames[by]}</h2>
      <ul class="facet">
        {shown.map(({ name: group = 'none', filter = '', objects }) => (
          <li key={filter}>
            <Link page="search" choices={choicesOf({ ...search, query: withClauses(search.query, filter), open: undefined })}>
              <Text>{groupText(by, group)}</Text>
              <small class="quiet">{countOf(objects)}</small>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

const shortCounts = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** 1.2M: the exact number is above the results. */
function countOf(objects: number): string {
  return shortCounts.format(objects);
}
