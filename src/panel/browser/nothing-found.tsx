/** What is shown in place of an empty list: what each clause leaves out, what the bucket lacks, and the question for one key. */
import { useState } from 'preact/hooks';
import { call, type AnswerTo } from './api.ts';
import { isDoubtful, type AsOf } from './agreement.tsx';
import { Field, Form } from './form.tsx';
import { useLoaded } from './load.ts';
import { Busy, Link, Text } from './parts.tsx';
import { go, hrefOf } from './place.ts';
import { onlyValueIn } from './query-text.ts';
import { without } from './search-box.tsx';
import { choicesOf, requestOf, type Search } from './search-place.ts';
import { numberText } from './words.ts';

type Clause = NonNullable<AnswerTo<'GET /v1/objects'>['understood']>[number];

/** Each is a search; more clauses than these are rarely written. */
const CLAUSES_MAX = 8;
/** A larger number does not change what a person does next. */
const COUNT_MAX = 1_000;

interface NothingFoundProps {
  readonly search: Search;
  readonly understood: readonly Clause[];
  readonly asOf: readonly AsOf[];
}

export function NothingFound({ search, understood, asOf }: NothingFoundProps) {
  const doubtful = asOf.filter((each) => isDoubtful(each));
  return (
    <div class="empty">
      <p>No object in the index matches.</p>
      {understood.length > 0 && <Without search={search} understood={understood.slice(0, CLAUSES_MAX)} />}
      {doubtful.map(({ bucket, status }) => (
        <p class="advice" key={bucket}>
          The index of <Text>{bucket}</Text> is not complete for certain: <Text>{status.sentence}</Text>.{' '}
          <Link page="gaps" choices={{ bucket }}>
            Gaps of this bucket
          </Link>
          {' · '}
          <Link page="jobs" choices={{ bucket }}>
            Its re-index jobs
          </Link>
        </p>
      ))}
      <WhyNotHere search={search} understood={understood} />
    </div>
  );
}

interface Left {
  readonly clause: Clause;
  /** How many objects match without it; undefined: that cannot be counted. */
  readonly count: number | undefined;
}

/** How many objects match without each clause. One after another, because a search waits for those before it. */
function Without({ search, understood }: { readonly search: Search; readonly understood: readonly Clause[] }) {
  async function read(signal: AbortSignal): Promise<readonly Left[]> {
    const counted: Left[] = [];
    for (const clause of understood) counted.push({ clause, count: await countOf(without(search, clause), signal) });
    return counted;
  }
  const { value } = useLoaded(`without ${JSON.stringify(requestOf(search))}`, read);
  if (value === undefined) return <Busy>Counting without each filter…</Busy>;
  // what finds nothing either is no way on
  const found = value.filter(({ count }) => count !== undefined && count > 0);
  if (found.length === 0) return <p>Nor does any without one of the filters.</p>;
  return (
    <ul aria-label="Without one of the filters">
      {found.map(({ clause, count }) => (
        <li key={clause.position}>
          <Link page="search" choices={choicesOf(without(search, clause))} isRow>
            Without <Text>{clause.text}</Text>: {countShown(count)}
          </Link>
        </li>
      ))}
    </ul>
  );
}

async function countOf(search: Search, signal: AbortSignal): Promise<number | undefined> {
  try {
    const { total } = await call('GET /v1/objects', { query: { ...requestOf(search), limit: 1, total: 'true' } }, signal);
    return total?.value;
  } catch (error) {
    if (signal.aborted) throw error;
    // a pattern, for example, may not be possible without the prefix beside it
    return undefined;
  }
}

function countShown(count = 0): string {
  return count > COUNT_MAX ? `more than ${numberText(COUNT_MAX)}` : numberText(count);
}

/** The key that a person probably means. */
function meantOf({ query }: Search, understood: readonly Clause[]): readonly [bucket: string, key: string] {
  const object = understood.find(({ field }) => field === 'object');
  if (object !== undefined) return [object.values[0] ?? '', object.values[1] ?? ''];
  const text = understood.filter(({ field, negated }) => !negated && ['words', 'contains'].includes(field));
  const key = onlyValueIn(query, 'key') ?? onlyValueIn(query, 'prefix') ?? text.map(({ values }) => values.join(' ')).join(' ');
  return [onlyValueIn(query, 'bucket') ?? '', key];
}

/** Leads to the page of the object, which asks the index and S3. */
function WhyNotHere({ search, understood }: { readonly search: Search; readonly understood: readonly Clause[] }) {
  const [meantBucket, meantKey] = meantOf(search, understood);
  const [bucket, setBucket] = useState(meantBucket);
  const [key, setKey] = useState(meantKey);
  return (
    <details>
      <summary>Why is it not here?</summary>
      <Form submit="Ask S3 and the index" onSubmit={async () => go(hrefOf('object', { bucket, key }))}>
        <Field label="Bucket" value={bucket} onChange={setBucket} isRequired />
        <Field label="Key" value={key} onChange={setKey} isRequired />
      </Form>
    </details>
  );
}
