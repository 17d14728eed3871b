/** How far the index of each bucket of a search can be relied on: above every result. */
import { call, type AnswerTo } from './api.ts';
import { Act } from './bucket-act.tsx';
import { useLoaded } from './load.ts';
import { Link, Text, useNow } from './parts.tsx';
import { countText, durationText, numberText } from './words.ts';

export type AsOf = Pick<NonNullable<AnswerTo<'GET /v1/objects'>['as_of']>[number], 'bucket' | 'status'>;

/** That is what fits above a result. */
const SHOWN_MAX = 8;

/** Whether anything is known that may keep the index of a bucket from agreeing with it. */
export function isDoubtful({ status }: Pick<AsOf, 'status'>): boolean {
  return status.state !== 'ok';
}

/** The same for all buckets, for a search that names none. Of a large installation one page, the largest, is shown. */
const readAll = (signal: AbortSignal) => call('GET /v1/buckets', { query: { limit: 1_000 } }, signal);

/** The lines of all buckets: those that agree as one. */
export function AsOfAll() {
  const { value: page, atMs = Date.now() } = useLoaded('as of all buckets', readAll);
  const value = page?.items ?? [];
  const doubtful = value.filter((each) => isDoubtful(each));
  const agreeing = value.length - doubtful.length;
  const left = doubtful.length - SHOWN_MAX;
  return (
    <>
      {agreeing > 0 && (
        <p class="as-of">
          <Link page="buckets">{countText(agreeing, 'bucket')}</Link> {agreeing === 1 ? 'agrees' : 'agree'} as of <Ago atMs={atMs} /> ago
        </p>
      )}
      <AsOfLines of={doubtful.slice(0, SHOWN_MAX)} atMs={atMs} />
      {left > 0 && (
        <p class="as-of">
          and {numberText(left)} more <Link page="buckets">buckets</Link> that may differ
        </p>
      )}
      {page?.next !== undefined && (
        <p class="as-of">
          Only the first {numberText(value.length)} buckets are counted here. The list of <Link page="buckets">buckets</Link> has the status
          of each.
        </p>
      )}
    </>
  );
}

/** One line for each bucket. */
export function AsOfLines({ of, atMs }: { readonly of: readonly AsOf[]; readonly atMs: number }) {
  return (
    <>
      {of.map((each) => (
        <p class="as-of" key={each.bucket}>
          Bucket{' '}
          <Link page="bucket" choices={{ bucket: each.bucket }}>
            <Text>{each.bucket}</Text>
          </Link>{' '}
          <Agreement of={each} atMs={atMs} />
        </p>
      ))}
    </>
  );
}

/** The word is used only where nothing is known to the contrary. */
function Agreement({ of, atMs }: { readonly of: AsOf; readonly atMs: number }) {
  if (isDoubtful(of)) {
    return (
      <>
        <strong class="state notable">
          may differ: <Text>{of.status.sentence}</Text>
        </strong>{' '}
        <Act of={of} />
      </>
    );
  }
  return (
    <span class="state good">
      agrees as of <Ago atMs={atMs} /> ago
    </span>
  );
}

function Ago({ atMs }: { readonly atMs: number }) {
  return <>{durationText((useNow() - atMs) / 1_000)}</>;
}
