/** How far the index of each bucket of a search can be relied on: above every result. */
import { call, type AnswerTo } from './api.ts';
import { useLoaded } from './load.ts';
import { Link, Text, Time, useNow } from './parts.tsx';
import { countText, durationText, numberText } from './words.ts';

export type AsOf = NonNullable<AnswerTo<'GET /v1/objects'>['as_of']>[number];

/** Routed buckets are compared every week, others when it is requested: after a month it is worth knowing. */
const COMPARED_DAYS_MAX = 30;
const DAY_MS = 86_400_000;
/** More gaps of all buckets than one page has are not told apart here. */
const GAPS_MAX = 1_000;
/** That is what fits above a result. */
const SHOWN_MAX = 8;

/** Whether something keeps the index of a bucket from agreeing with it. */
export function isDoubtful({ status, gaps }: AsOf): boolean {
  return status.state !== 'ok' || gaps > 0;
}

/** The same for all buckets, for a search that names none. */
async function readAll(signal: AbortSignal): Promise<readonly AsOf[]> {
  const [buckets, gaps] = await Promise.all([
    call('GET /v1/buckets', {}, signal),
    call('GET /v1/gaps', { query: { state: 'open', limit: GAPS_MAX } }, signal),
  ]);
  return buckets.items.map(({ bucket, status, last_reindex_at: comparedAt }) => {
    const open = gaps.items.filter((gap) => gap.bucket === bucket);
    const prefixes = [...new Set(open.map(({ prefix }) => prefix ?? ''))];
    return {
      bucket,
      status,
      gaps: open.length,
      gap_prefixes: prefixes.slice(0, 3),
      ...(comparedAt !== undefined && { last_reindex_at: comparedAt }),
    };
  });
}

/** The lines of all buckets: those that agree as one. */
export function AsOfAll() {
  const { value = [], atMs = Date.now() } = useLoaded('as of all buckets', readAll);
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
          <GapsOf of={each} />
          <Compared of={each} />
        </p>
      ))}
    </>
  );
}

function Agreement({ of: { status, gaps }, atMs }: { readonly of: AsOf; readonly atMs: number }) {
  const nowMs = useNow();
  if (status.state === 'waiting') {
    const behindMs = nowMs - new Date(status.since ?? nowMs).getTime();
    return (
      <strong class="state notable">
        is behind {durationText(behindMs / 1_000)}
        {status.reason !== undefined && (
          <>
            : <Text>{status.reason}</Text>
          </>
        )}
      </strong>
    );
  }
  if (status.state === 'never_compared') return <strong class="state notable">was never compared as a whole</strong>;
  if (gaps > 0) return null;
  return (
    <span class="state good">
      agrees as of <Ago atMs={atMs} /> ago
    </span>
  );
}

function Ago({ atMs }: { readonly atMs: number }) {
  return <>{durationText((useNow() - atMs) / 1_000)}</>;
}

function GapsOf({ of: { bucket, status, gaps, gap_prefixes: prefixes } }: { readonly of: AsOf }) {
  if (gaps === 0) return null;
  const shown = prefixes.map((prefix) => (prefix === '' ? 'whole bucket' : prefix));
  return (
    <>
      {status.state === 'ok' ? 'has ' : ', with '}
      <Link page="gaps" choices={{ bucket }}>
        {countText(gaps, 'open gap')}: <Text>{shown.join(', ')}</Text>
      </Link>
    </>
  );
}

function Compared({ of: { bucket, last_reindex_at: at } }: { readonly of: AsOf }) {
  if (at === undefined || Date.now() - new Date(at).getTime() < COMPARED_DAYS_MAX * DAY_MS) return null;
  return (
    <>
      {', '}
      <Link page="bucket" choices={{ bucket }}>
        not compared since
      </Link>{' '}
      <Time at={at} />
    </>
  );
}
