/** The one box: what is typed becomes the address once it is submitted. The filters only write into it. */
import { useId, useState } from 'preact/hooks';
import { locationOf } from '../../domain/search/location.ts';
import type { AnswerTo, Problem } from './api.ts';
import { Field, Select } from './form.tsx';
import { Link, Text } from './parts.tsx';
import { go, hrefOf, place } from './place.ts';
import { asksForDeleted, clauseOf, isReadable, valueIn, withField, withoutPart, type FieldPlace } from './query-text.ts';
import { choicesOf, pageOf, searchHref, type Search } from './search-place.ts';
import { sizeText, timeText, zone, zoneName } from './words.ts';
import { useObserved } from './observed.ts';

const HINT =
  'Words of the key, "exact parts", patterns such as *.tar.gz, and filters: ext:pdf size>1G modified<7d -word. Or paste an s3:// address, an ARN or a link to an object.';
const EXAMPLE = 'Words, "exact parts", *.tar.gz, ext:pdf size>1G modified<7d, or an s3:// address';

interface BoxProps {
  readonly search: Search;
  readonly buckets: readonly string[];
  /** What is wrong with the query, if something is. */
  readonly mistake: Problem | undefined;
  /** The same search is wanted once more. */
  readonly onAgain: () => void;
}

/** The address to which a submitted text leads: that of an object or a folder if it names one. */
function destinationOf(text: string, search: Search): string {
  const location = locationOf(text);
  if (location === undefined) return searchHref({ ...search, query: text });
  const { bucket, key } = location;
  if (key !== '' && !key.endsWith('/')) return hrefOf('object', { bucket, key });
  const fields = [`bucket:${bucket}`, ...(key === '' ? [] : [clauseOf({ name: 'prefix', operator: ':' }, [key])])];
  return hrefOf('usage', choicesOf({ ...search, view: 'folders', by: 'folder', query: fields.join(' '), open: undefined }));
}

export function SearchBox({ search, buckets, mistake, onAgain }: BoxProps) {
  const [typed, setTyped] = useState(search.query);
  const id = useId();
  function submit(): void {
    const href = destinationOf(typed.trim(), search);
    if (href === place.read().href) onAgain();
    else go(href);
  }
  return (
    <>
      <form
        class="search-line"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <label class="box">
          <span class="unseen">Search for</span>
          <textarea
            id="search-box"
            rows={1}
            value={typed}
            placeholder={EXAMPLE}
            autocomplete="off"
            spellcheck={false}
            autocapitalize="off"
            aria-invalid={mistake === undefined ? undefined : true}
            aria-describedby={mistake === undefined ? `${id}-hint` : `${id}-mistake ${id}-hint`}
            onInput={(event) => setTyped(event.currentTarget.value)}
            onKeyDown={(event) => {
              // the keys of the page work again
              if (event.key === 'Escape') document.querySelector<HTMLElement>('#content')?.focus({ preventScroll: true });
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }}
          />
        </label>
        <small class="unseen" id={`${id}-hint`}>
          {HINT}
        </small>
        <button type="submit">Search</button>
        <Filters typed={typed} onType={setTyped} buckets={buckets} />
      </form>
      {mistake !== undefined && <Mistake id={`${id}-mistake`} query={search.query} mistake={mistake} />}
    </>
  );
}

/** What is wrong, with the query as it was sent and the place in it. */
function Mistake({ id, query, mistake }: { readonly id: string; readonly query: string; readonly mistake: Problem }) {
  const position = mistake.numbers['position'] ?? 0;
  const character = String.fromCodePoint(query.codePointAt(position) ?? 0x20);
  function show(): void {
    const box = document.querySelector<HTMLTextAreaElement>('#search-box');
    box?.focus();
    box?.setSelectionRange(position, position + character.length);
  }
  return (
    <div role="alert" class="failure" id={id}>
      <p>
        <Text>{mistake.message}</Text>
      </p>
      <p>
        <code>
          <Text>{query.slice(0, position)}</Text>
          <mark>
            <Text>{character}</Text>
          </mark>
          <Text>{query.slice(position + character.length)}</Text>
        </code>{' '}
        <button type="button" class="outline small" onClick={show}>
          Go to the mistake
        </button>
      </p>
    </div>
  );
}

interface FiltersProps {
  readonly typed: string;
  readonly onType: (text: string) => void;
  readonly buckets: readonly string[];
}

interface FilterField {
  readonly label: string;
  readonly place: FieldPlace;
  readonly placeholder?: string;
  readonly type?: 'date';
  /** Commas separate values of which one must fit. */
  readonly isList?: boolean;
}

const FIELDS: readonly FilterField[] = [
  { label: 'Prefix', place: { name: 'prefix', operator: ':' }, placeholder: '2026/' },
  { label: 'Extension', place: { name: 'ext', operator: ':' }, placeholder: 'parquet,csv', isList: true },
  { label: 'Size at least', place: { name: 'size', operator: '>=' }, placeholder: '64K, 1.5G' },
  { label: 'Size at most', place: { name: 'size', operator: '<=' }, placeholder: '1GB' },
  { label: 'Modified since', place: { name: 'modified', operator: '>=' }, type: 'date' },
  { label: 'Modified before', place: { name: 'modified', operator: '<' }, type: 'date' },
  { label: 'Content type', place: { name: 'type', operator: ':' }, placeholder: 'image/*', isList: true },
  { label: 'Storage class', place: { name: 'class', operator: ':' }, placeholder: 'GLACIER', isList: true },
  { label: 'Tag', place: { name: 'tag', operator: ':' }, placeholder: 'team=ml' },
  { label: 'User metadata', place: { name: 'meta', operator: ':' }, placeholder: 'owner=alice' },
];

const BUCKET: FieldPlace = { name: 'bucket', operator: ':' };

/** Fields that read from the box and write into it. */
function Filters({ typed, onType, buckets }: FiltersProps) {
  const inZone = useObserved(zone);
  if (!isReadable(typed)) {
    return (
      <details class="filter-form">
        <summary>Filters</summary>
        <p class="panel">The text has a mistake, such as a quote that is not closed. The filters write into it once it is mended.</p>
      </details>
    );
  }
  const bucket = valueIn(typed, BUCKET);
  const names = bucket === '' || buckets.includes(bucket) ? buckets : [bucket, ...buckets];
  return (
    <details class="filter-form">
      <summary>Filters</summary>
      <div class="panel">
        <div class="columns">
          <Select
            label="Bucket"
            value={bucket}
            choices={[['', 'all buckets'], ...names.map((name) => [name, name] as const)]}
            onChange={(name) => onType(withField(typed, BUCKET, name === '' ? [] : [name]))}
          />
          {FIELDS.map(({ label, place: field, placeholder, type = 'text' as const, isList }) => (
            <Field
              key={label}
              label={label}
              type={type}
              value={shownValue(typed, field, type)}
              onChange={(value) => onType(withField(typed, field, valuesOf(value, isList === true)))}
              {...(placeholder !== undefined && { placeholder })}
            />
          ))}
        </div>
        <small>
          Dates are in {inZone === 'utc' || zoneName() === '' ? 'UTC' : zoneName()}. The filters write into the box; Search applies it.
          Content type, tags and metadata need a bucket that is enriched with them.
        </small>
      </div>
    </details>
  );
}

/** An age in the place of a date is not shown by a field for dates. */
function shownValue(typed: string, field: FieldPlace, type: 'text' | 'date'): string {
  const value = valueIn(typed, field);
  return type === 'date' && !/^\d{4}-\d\d-\d\d$/.test(value) ? '' : value;
}

function valuesOf(value: string, isList: boolean): readonly string[] {
  const values = isList ? value.split(',') : [value];
  // while a list is typed its last value is empty
  return values.every((each) => each.trim() === '') ? [] : values;
}

type Clause = NonNullable<AnswerTo<'GET /v1/objects'>['understood']>[number];

/** The clauses as they were understood. Each can be removed. */
export function Chips({ search, understood }: { readonly search: Search; readonly understood: readonly Clause[] }) {
  const inZone = useObserved(zone);
  if (understood.length === 0) return null;
  return (
    <ul class="chips" aria-label="The search as it was understood">
      {understood.map((clause) => (
        <li key={clause.position}>
          <span>
            <Text>{chipText(clause, inZone)}</Text>
          </span>
          <Link page={pageOf(search)} choices={choicesOf(without(search, clause))}>
            <span aria-hidden="true">✕</span>
            <span class="unseen">
              Remove <Text>{clause.text}</Text>
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** The search without one clause. */
export function without(search: Search, { text, position }: Clause): Search {
  return { ...search, query: withoutPart(search.query, position, text.length) };
}

/** Fields in words. */
const fieldWords: Readonly<Record<string, string>> = {
  words: 'word',
  contains: 'contains',
  match: 'pattern',
  object: 'object',
  ext: 'extension',
  type: 'content type',
  class: 'storage class',
  meta: 'metadata',
};

function chipText({ field, negated, operator, values }: Clause, inZone: 'utc' | 'local'): string {
  const shown = values.map((value) => valueText(field, value, inZone));
  const value = field === 'object' ? shown.join('/') : shown.join(' or ');
  return `${negated ? 'not ' : ''}${fieldWords[field] ?? field}${operator === undefined ? ':' : ` ${operator}`} ${value}`;
}

function valueText(field: string, value: string, inZone: 'utc' | 'local'): string {
  if (field === 'size') return sizeText(Number(value));
  return field === 'modified' || field === 'deleted' ? timeText(value, inZone) : value;
}

/** What is wrong with the text of the box, if that is what failed. */
export function mistakeOf(problem: Problem | undefined): Problem | undefined {
  return problem?.numbers['position'] === undefined ? undefined : problem;
}

/** Whether a search is one for deleted objects. */
export function isDeletedSearch({ query }: Search): boolean {
  return asksForDeleted(query);
}
