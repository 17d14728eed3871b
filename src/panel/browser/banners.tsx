/** What is below every page when there is reason: how the registry answers, what the person may read, and keys that end. */
import type { ApiKey } from '../../api/api-keys.ts';
import { call, connection } from './api.ts';
import { daysLeft, endsSoon } from './key-days.tsx';
import { useLoaded } from './load.ts';
import { useObserved } from './observed.ts';
import { Link, Text } from './parts.tsx';
import { may } from './session.ts';

/** As many parts of buckets as fit into a line or two. */
const SHOWN_PARTS = 5;

export function Banners() {
  return (
    <div class="banners">
      <ConnectionBanner />
      <AccessBanner />
      <KeysBanner />
    </div>
  );
}

function ConnectionBanner() {
  const answers = useObserved(connection);
  return (
    <div role="status">
      {answers === 'lost' && (
        <p class="banner">The registry cannot be reached. What is shown may be old; the page continues as soon as it answers.</p>
      )}
      {answers === 'slow' && <p class="banner">The registry takes long to answer.</p>}
    </div>
  );
}

/** What a person may read who does not read everything, so that nobody takes a part for the whole. */
function AccessBanner() {
  const { value } = useLoaded('access', (signal) => call('GET /v1/access', {}, signal));
  if (value === undefined || value.reads.includes('*')) return null;
  const { reads, advice } = value;
  const more = reads.length - SHOWN_PARTS;
  return (
    <aside class="banner" aria-label="What you may read">
      {advice ?? (
        <>
          You may read <Text>{reads.slice(0, SHOWN_PARTS).join(', ')}</Text>
          {more > 0 && ` and ${more} more`}: searches, sums and changes are of these only.
        </>
      )}
    </aside>
  );
}

function KeysBanner() {
  const read = async (signal: AbortSignal): Promise<readonly ApiKey[]> =>
    (await call('GET /v1/api-keys', { query: { status: 'ACTIVE' } }, signal)).items.filter(endsSoon);
  const { value = [] } = useLoaded('keys that end soon', read, { isWanted: may('GET /v1/api-keys') });
  const [first] = value;
  if (first === undefined) return null;
  return (
    <aside class="banner" aria-label="Keys that end soon">
      Your API key <Text>{first.name}</Text> ends in {daysLeft(first, Date.now())}
      {value.length > 1 && `, and ${value.length - 1} more end soon`}. <Link page="keys">Show your keys</Link>
    </aside>
  );
}
