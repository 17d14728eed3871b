/** Search by the box's text, narrowed by groups. The address holds all of it, so every search is a link. */
import { parseQuery } from '../../search/parse.rules.ts';
import type { AnswerTo } from './api.ts';
import { useAnswer } from './load.ts';
import { Link, Tabs, Text } from './parts.tsx';
import type { Choices } from './place.ts';
import { asksForDeleted, forDeleted, forLive, withClauses } from './query-text.ts';
import { Results, useObjects } from './results.tsx';
import { MISTAKE_ID } from './search-box.tsx';
import { choicesOf, searchOf, type Search } from './search-place.ts';

export function SearchPage({ choices }: { readonly choices: Choices }) {
  const search = searchOf(choices);
  const mistake = mistakeIn(search.query);
  const found = useObjects(search, choices['cursor'], mistake === undefined);
  const isDeleted = asksForDeleted(search.query);
  const live: Search = { ...search, query: forLive(search.query) };
  return (
    <>
      <h1 class="unseen">Search</h1>
      {mistake !== undefined && (
        <p role="alert" class="failure" id={MISTAKE_ID}>
          <Text>{mistake.message}</Text>:{' '}
          <code>
            <Text>{search.query.slice(0, mistake.position)}</Text>
            <mark>
              <Text>{search.query.slice(mistake.position)}</Text>
            </mark>
          </code>
        </p>
      )}
      <div class="search-body">
        <div class="beside">
          <Tabs
            label="Which objects"
            of={[
              ['Objects', 'search', choicesOf(live), !isDeleted],
              ['Deleted', 'search', choicesOf({ ...live, query: forDeleted(search.query) }), isDeleted],
            ]}
          />
          <Facets search={search} isWanted={(found.value?.items.length ?? 0) > 0 && !isDeleted} />
        </div>
        {mistake === undefined && <Results search={search} found={found} />}
      </div>
    </>
  );
}

/** What is wrong with the box's text, if anything. The registry parses it in the same way. */
function mistakeIn(query: string) {
  const parsed = parseQuery(query, { nowMs: Date.now(), timeZone: 'UTC' });
  return 'message' in parsed ? parsed : undefined;
}

type Grouping = AnswerTo<'GET /v1/usage'>['by'][number];

const groupNames: Readonly<Record<Grouping['by'], string>> = {
  folder: 'Folder',
  class: 'Storage class',
  extension: 'Extension',
  size: 'Size',
  age: 'Age',
  bucket: 'Bucket',
};

const ageTexts: Readonly<Record<string, string>> = {
  '1d': 'less than a day',
  '7d': '1 to 7 days',
  '30d': '7 to 30 days',
  '90d': '30 to 90 days',
  '365d': '90 to 365 days',
  older: 'older than 365 days',
};

/** A group in words: what is in it and not in an earlier one. */
function groupText(by: Grouping['by'], name: string): string {
  if (by === 'age') return ageTexts[name] ?? name;
  if (by !== 'size') return name;
  return name === 'larger' ? '10 GiB and more' : `below ${name.replace(/([KMG])$/, ' $1iB')}`;
}

/** To narrow by a further group, type it. */
const GROUPS_MAX = 6;

/** As in the style sheet. On narrow screens the groups are above the results and start folded. */
const narrow = matchMedia('(max-width: 800px)');

const kinds = ['bucket', 'extension', 'class', 'size', 'age'] as const;

interface FacetsProps {
  readonly search: Search;
  /** The results have arrived. The sums read everything that matches, so they must not delay the results. */
  readonly isWanted: boolean;
}

/** The groups, left of the results. Each link adds the filter of its group. */
function Facets({ search, isWanted }: FacetsProps) {
  const request = { ...(search.query !== '' && { query: search.query }), by: [...kinds], limit: GROUPS_MAX };
  const { value, problem } = useAnswer('GET /v1/usage', { query: request }, { isWanted });
  if (problem !== undefined) {
    return (
      <p class="quiet">
        – <Text>{problem.message}</Text>
      </p>
    );
  }
  if (value === undefined) return null;
  return (
    <details class="facets" open={!narrow.matches}>
      <summary>Narrow the search</summary>
      {value.by.map((grouping) => (
        <Facet key={grouping.by} of={grouping} search={search} />
      ))}
    </details>
  );
}

const shortCounts = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** A single group offers no choice. The exact number is above the results. */
function Facet({ of: { by, groups }, search }: { readonly of: Grouping; readonly search: Search }) {
  const shown = groups.filter(({ filter, objects }) => filter !== undefined && objects > 0);
  if (shown.length < 2) return null;
  return (
    <>
      <h2>{groupNames[by]}</h2>
      <ul class="facet">
        {shown.map(({ name: group = 'none', filter = '', objects }) => (
          <li key={filter}>
            <Link page="search" choices={choicesOf({ ...search, query: withClauses(search.query, filter) })}>
              <Text>{groupText(by, group)}</Text>
              <small class="quiet">{shortCounts.format(objects)}</small>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}
