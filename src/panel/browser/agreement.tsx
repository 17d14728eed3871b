/** How far the index can be relied on for what a search finds: one badge, which opens to a line for each bucket. */
import type { AnswerTo } from './api.ts';
import { useBuckets } from './all-buckets.ts';
import { Act } from './bucket-act.tsx';
import { Link, Text, useNow } from './parts.tsx';
import { durationText, numberText } from './words.ts';

export type AsOf = Pick<NonNullable<AnswerTo<'GET /v1/objects'>['as_of']>[number], 'bucket' | 'status'>;

/** That is what fits below a badge. */
const SHOWN_MAX = 8;

/** Whether anything is known that may keep the index of a bucket from agreeing with it. */
export function isDoubtful({ status }: Pick<AsOf, 'status'>): boolean {
  return status.state !== 'ok';
}

/** Of the buckets of a search, or, for a search that names none, of all. */
export function Agreement({ of, atMs }: { readonly of: readonly AsOf[]; readonly atMs: number }) {
  return of.length > 0 ? <Badge of={of} atMs={atMs} /> : <OfAll />;
}

/** Of a large installation one page, the largest, is counted. */
function OfAll() {
  const { value, atMs = Date.now() } = useBuckets();
  if (value === undefined || value.items.length === 0) return null;
  return <Badge of={value.items} atMs={atMs} isPart={value.next !== undefined} />;
}

interface BadgeProps {
  readonly of: readonly AsOf[];
  readonly atMs: number;
  /** There are more buckets than these. */
  readonly isPart?: boolean;
}

function Badge({ of, atMs, isPart }: BadgeProps) {
  const doubtful = of.filter((each) => isDoubtful(each));
  const isBad = doubtful.some(({ status }) => status.severity === 'bad');
  const ago = durationText((useNow() - atMs) / 1_000);
  const whose = of.length === 1 ? 'The index' : `${numberText(of.length)} buckets`;
  const look = doubtful.length === 0 ? 'good' : isBad ? 'bad' : 'notable';
  return (
    <details class="agreement">
      <summary class={`state dot ${look}`}>
        {doubtful.length === 0
          ? `${whose} ${of.length === 1 ? 'agrees' : 'agree'} as of ${ago} ago`
          : `${of.length === 1 ? 'The index' : `${numberText(doubtful.length)} of ${numberText(of.length)} buckets`} may differ`}
      </summary>
      <Lines of={doubtful.length === 0 ? of : doubtful} ago={ago} isPart={isPart === true} />
    </details>
  );
}

function Lines({ of, ago, isPart }: { readonly of: readonly AsOf[]; readonly ago: string; readonly isPart: boolean }) {
  const left = of.length - SHOWN_MAX;
  return (
    <ul>
      {of.slice(0, SHOWN_MAX).map((each) => (
        <li class="as-of" key={each.bucket}>
          <Link page="bucket" choices={{ bucket: each.bucket }}>
            <Text>{each.bucket}</Text>
          </Link>{' '}
          {isDoubtful(each) ? (
            <>
              may differ: <Text>{each.status.sentence}</Text> <Act of={each} />
            </>
          ) : (
            `agrees as of ${ago} ago`
          )}
        </li>
      ))}
      {left > 0 && (
        <li>
          and {numberText(left)} more <Link page="buckets">buckets</Link>
        </li>
      )}
      {isPart && (
        <li>
          There are more buckets than are counted here. The list of <Link page="buckets">buckets</Link> has the status of each.
        </li>
      )}
    </ul>
  );
}
