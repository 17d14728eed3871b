/** Where a person can go: the rail at the left, which a telephone opens over the page. */
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiKey } from '../../api/api-keys.ts';
import { useBuckets } from './all-buckets.ts';
import { call, sessionEnded } from './api.ts';
import { Act } from './form.tsx';
import { forget, useLoaded } from './load.ts';
import { useObserved } from './observed.ts';
import { Link, Text } from './parts.tsx';
import { factsOf, pages, place, type PageName } from './place.ts';
import { may, session } from './session.ts';
import { numberText } from './words.ts';

const RAIL = 'rail';

/** The pages of the rail that this person may see. */
function entries(): readonly PageName[] {
  const names = Object.keys(pages).filter((name): name is PageName => Object.hasOwn(pages, name));
  return names.filter((name) => {
    const { needs, within } = factsOf(name);
    return within === undefined && (needs === undefined || may(needs));
  });
}

/** Shows the rail on a telephone. */
export function TopBar() {
  return (
    <header class="topbar">
      <button type="button" class="outline" {...{ popovertarget: RAIL }}>
        Menu
        <Count of="buckets" />
      </button>
      <strong>Tally</strong>
    </header>
  );
}

export function Rail({ page }: { readonly page: PageName }) {
  const rail = useRef<HTMLElement>(null);
  const here = useObserved(place);
  useEffect(() => {
    if (rail.current?.matches(':popover-open') === true) rail.current.hidePopover();
  }, [here]);
  return (
    <aside ref={rail} id={RAIL} class="rail" popover="auto">
      <strong class="brand">Tally</strong>
      <nav aria-label="Pages">
        <ul>
          {entries().map((name) => (
            <li key={name}>
              <Link page={name} isCurrent={name === page || name === factsOf(page).within}>
                {pages[name].title}
                <Count of={name} />
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <Person />
    </aside>
  );
}

/** What goes on, and how much there is that needs a look. */
function Count({ of }: { readonly of: PageName }) {
  const { value } = useBuckets();
  if (of === 'keys') return <EndingKeys />;
  if (value === undefined) return null;
  const { items, activity } = value;
  const doubtful = items.filter(({ status }) => status.severity !== 'ok');
  const look = doubtful.some(({ status }) => status.severity === 'bad') ? 'bad' : 'notable';
  const badges: Partial<Record<PageName, VNode>> = {
    buckets: <Badge count={doubtful.length} of="may differ" look={look} />,
    activity: <Badge count={activity?.jobs} of="jobs have not ended" look="plain" />,
    letters: <Badge count={activity?.dead_letters} of="messages" look="bad" />,
  };
  return badges[of] ?? null;
}

/** From this time on the panel warns that a key of the user ends, as the registry does in its answers. */
const SOON_MS = 14 * 86_400_000;

/** Whether an active key ends within two weeks. */
export function endsSoon({ status, expires_at: at }: Pick<ApiKey, 'expires_at' | 'status'>): boolean {
  return status === 'ACTIVE' && new Date(at).getTime() - Date.now() < SOON_MS;
}

function EndingKeys() {
  const read = (signal: AbortSignal) => call('GET /v1/api-keys', { query: { status: 'ACTIVE' } }, signal);
  const { value } = useLoaded('own active keys', read);
  return <Badge count={value?.items.filter(endsSoon).length} of="end within two weeks" look="notable" />;
}

function Badge({ count = 0, of, look }: { readonly count: number | undefined; readonly of: string; readonly look: string }) {
  if (count === 0) return null;
  return (
    <span class={`count ${look}`} title={of}>
      {numberText(count)}
      <span class="unseen"> {of}</span>
    </span>
  );
}

/** Who the person is; and the keys for those who use the page all day. */
function Person() {
  const known = session.read();
  async function logOut(): Promise<void> {
    await call('POST /login/logout', {});
    session.set(undefined);
    forget();
    sessionEnded.set(true);
  }
  if (known === undefined) return null;
  return (
    <div class="foot">
      <span class="person">
        <Text>{known.kind === 'local' ? 'This machine' : known.user.email}</Text>{' '}
        <small class="quiet">
          {known.user.email_verified === false && '(not verified) '}({known.role})
        </small>
      </span>
      {known.kind === 'session' && (
        <Act look="outline small" act={logOut}>
          Log out
        </Act>
      )}
      <small class="quiet">
        <kbd>/</kbd> search, <kbd>j</kbd> <kbd>k</kbd> rows
      </small>
    </div>
  );
}
