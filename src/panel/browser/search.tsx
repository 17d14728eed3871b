/** Search: one box, and what it finds as a list, by folder, or as it changes. All of it is in the address, so that it is a link. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { useBuckets } from './all-buckets.ts';
import type { Problem } from './api.ts';
import { Changes } from './changes.tsx';
import { Drawer } from './drawer.tsx';
import { Facets } from './facets-list.tsx';
import { useObserved } from './observed.ts';
import { Link } from './parts.tsx';
import { replacePlace, type Choices } from './place.ts';
import { forDeleted, forLive } from './query-text.ts';
import { Results } from './results.tsx';
import { isDeletedSearch, mistakeOf, SearchBox } from './search-box.tsx';
import { choicesOf, requestOf, searchHref, searchOf, type Search } from './search-place.ts';
import { zone, zoneName } from './words.ts';

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
