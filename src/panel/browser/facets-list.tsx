/** The results of a search in groups, at its left: each adds the filter that narrows the search to it. */
import { call, type AnswerTo } from './api.ts';
import { useLoaded } from './load.ts';
import { Link, Text } from './parts.tsx';
import { withClauses } from './query-text.ts';
import { isDeletedSearch } from './search-box.tsx';
import { choicesOf, requestOf, type Search } from './search-place.ts';
import { ageTexts } from './ages.ts';

type Groups = AnswerTo<'GET /v1/objects/facets'>['bucket']['groups'];

/** More groups are found by typing. */
const GROUPS_MAX = 6;

/** As in the style sheet: there they are above the results, and must not hide them. */
const narrow = matchMedia('(max-width: 800px)');

const names = [
  ['bucket', 'Bucket'],
  ['extension', 'Extension'],
  ['class', 'Storage class'],
  ['size', 'Size'],
  ['age', 'Age'],
] as const;

/** `isWanted`: the results are there. The sums read everything that matches, and must not delay them. */
export function Facets({ search, isWanted }: { readonly search: Search; readonly isWanted: boolean }) {
  const { query, tz } = requestOf(search);
  const request = { ...(query !== undefined && { query }), ...(tz !== undefined && { tz }), limit: GROUPS_MAX };
  const { value } = useLoaded(
    `facets ${JSON.stringify(request)}`,
    (signal) => call('GET /v1/objects/facets', { query: request }, signal),
    // deleted objects have none of these
    { isWanted: isWanted && !isDeletedSearch(search) },
  );
  if (value === undefined) return null;
  const facets = names.map(([name, text]) => <Facet key={name} name={name} text={text} groups={value[name].groups} search={search} />);
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
  readonly name: (typeof names)[number][0];
  readonly text: string;
  readonly groups: Groups;
  readonly search: Search;
}

/** One group is no choice. */
function Facet({ name, text, groups, search }: FacetProps) {
  const shown = groups.filter(({ filter, objects }) => filter !== undefined && objects > 0);
  if (shown.length < 2) return null;
  return (
    <>
      <h2>{text}</h2>
      <ul class="facet">
        {shown.map(({ name: group = 'none', filter = '', objects }) => (
          <li key={filter}>
            <Link page="search" choices={choicesOf({ ...search, query: withClauses(search.query, filter), open: undefined })}>
              <Text>{textOf(name, group)}</Text>
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

function textOf(facet: FacetProps['name'], group: string): string {
  if (facet === 'age') return ageTexts[group] ?? group;
  if (facet !== 'size') return group;
  return group === 'larger' ? '10 GiB and more' : `below ${group.replace(/([KMG])$/, ' $1iB')}`;
}
