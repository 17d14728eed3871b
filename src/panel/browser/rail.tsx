/** Where a person can go: the rail at the left, which a telephone opens over the page, and the menu of the person. */
import { useEffect, useRef } from 'preact/hooks';
import { call, problemFrom, sessionEnded, type Key } from './api.ts';
import { useBuckets } from './all-buckets.ts';
import { forget } from './load.ts';
import { Menu } from './menu.tsx';
import { useObserved } from './observed.ts';
import { announce, Link, Text } from './parts.tsx';
import { place, type PageName } from './place.ts';
import { may, session } from './session.ts';
import { shortcuts } from './shortcuts.ts';
import { theme, themes } from './theme.ts';
import { numberText, zone } from './words.ts';

interface Entry {
  readonly page: PageName;
  readonly text: string;
  /** The operation that the page cannot do without. */
  readonly needs: Key;
  /** Other pages that belong to it. */
  readonly within?: readonly PageName[];
}

const daily: readonly Entry[] = [
  { page: 'overview', text: 'Overview', needs: 'GET /v1/gaps' },
  { page: 'buckets', text: 'Buckets', needs: 'GET /v1/buckets', within: ['bucket', 'doctor'] },
  { page: 'search', text: 'Search', needs: 'GET /v1/objects', within: ['object'] },
  { page: 'usage', text: 'Usage', needs: 'GET /v1/usage' },
  { page: 'jobs', text: 'Activity', needs: 'GET /v1/jobs', within: ['job', 'gaps'] },
  { page: 'letters', text: 'Dead letters', needs: 'GET /v1/dead-letters' },
  { page: 'keys', text: 'API keys', needs: 'GET /v1/api-keys' },
];

const administration: readonly Entry[] = [
  { page: 'access', text: 'Access', needs: 'GET /v1/admin/grants' },
  { page: 'all-keys', text: 'All API keys', needs: 'GET /v1/admin/api-keys' },
  { page: 'users', text: 'Users', needs: 'GET /v1/admin/users' },
  { page: 'audit', text: 'Audit', needs: 'GET /v1/admin/audit' },
  { page: 'health', text: 'Health', needs: 'GET /readyz' },
];

/** The operation without which a page has nothing to show. */
export function needOf(page: PageName): Key | undefined {
  if (page === 'doctor') return 'GET /v1/buckets/{bucket}/doctor';
  return [...daily, ...administration].find((entry) => entry.page === page || entry.within?.includes(page) === true)?.needs;
}

function isIn({ page, within = [] }: Entry, here: PageName): boolean {
  return page === here || within.includes(here);
}

const RAIL = 'rail';

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

export function Rail({ page, onHelp }: { readonly page: PageName; readonly onHelp: () => void }) {
  const rail = useRef<HTMLElement>(null);
  const here = useObserved(place);
  useEffect(() => {
    if (rail.current?.matches(':popover-open') === true) rail.current.hidePopover();
  }, [here]);
  const folded = administration.filter(({ needs }) => may(needs));
  return (
    <aside ref={rail} id={RAIL} class="rail" popover="auto">
      <strong class="brand">Tally</strong>
      <nav aria-label="Pages">
        <ul>
          {daily
            .filter(({ needs }) => may(needs))
            .map((entry) => (
              <RailEntry key={entry.page} entry={entry} here={page} />
            ))}
        </ul>
        {folded.length > 0 && (
          <details open={folded.some((entry) => isIn(entry, page))}>
            <summary>Administration</summary>
            <ul>
              {folded.map((entry) => (
                <RailEntry key={entry.page} entry={entry} here={page} />
              ))}
            </ul>
          </details>
        )}
      </nav>
      <PersonMenu onHelp={onHelp} />
    </aside>
  );
}

function RailEntry({ entry, here }: { readonly entry: Entry; readonly here: PageName }) {
  return (
    <li>
      <Link page={entry.page} isCurrent={isIn(entry, here)}>
        {entry.text}
        <Count of={entry.page} />
      </Link>
    </li>
  );
}

/** What goes on, and how much there is that needs a look: all from the list of buckets, which every page reads. */
function Count({ of }: { readonly of: PageName }) {
  const { value } = useBuckets();
  if (value === undefined) return null;
  const { items, activity = { jobs: 0, paused_jobs: 0 } } = value;
  if (of === 'letters') return <Badge count={activity.dead_letters ?? 0} of="messages" look="bad" />;
  if (of === 'buckets') {
    const isBad = items.some(({ status }) => status.severity === 'bad');
    return <Badge count={items.filter(({ status }) => status.severity !== 'ok').length} of="may differ" look={isBad ? 'bad' : 'notable'} />;
  }
  if (of !== 'jobs') return null;
  const waiting = items.reduce((sum, { gaps }) => sum + gaps, activity.paused_jobs);
  return (
    <>
      <Badge count={activity.jobs - activity.paused_jobs} of="jobs run or wait" look="plain" />
      <Badge count={waiting} of="open gaps and paused jobs" look="notable" />
    </>
  );
}

function Badge({ count, of, look }: { readonly count: number; readonly of: string; readonly look: string }) {
  if (count === 0) return null;
  return (
    <span class={`count ${look}`} title={of}>
      {numberText(count)}
      <span class="unseen"> {of}</span>
    </span>
  );
}

/** What belongs to the person and this browser. */
function PersonMenu({ onHelp }: { readonly onHelp: () => void }) {
  const inZone = useObserved(zone);
  const keys = useObserved(shortcuts);
  const look = useObserved(theme);
  const known = session.read();
  async function logOut(): Promise<void> {
    try {
      await call('POST /login/logout', {});
      session.set(undefined);
      forget();
      sessionEnded.set(true);
    } catch (error) {
      announce(problemFrom(error).message);
    }
  }
  if (known === undefined) return null;
  const who = known.kind === 'local' ? 'This machine' : known.user.email;
  return (
    <Menu
      look="plain outline person"
      shown={
        <>
          <Text>{who}</Text>
          <small>
            {known.user.email_verified === false && '(not verified) '}({known.role})
          </small>
        </>
      }
    >
      <button type="button" onClick={() => zone.set(inZone === 'utc' ? 'local' : 'utc')}>
        Times: {inZone === 'utc' ? 'UTC' : 'local'}
      </button>
      <button type="button" onClick={() => theme.set(themes[(themes.indexOf(look) + 1) % themes.length] ?? 'system')}>
        Theme: {look}
      </button>
      <button type="button" aria-pressed={keys === 'on'} onClick={() => shortcuts.set(keys === 'on' ? 'off' : 'on')}>
        Shortcuts: {keys}
      </button>
      <button type="button" onClick={onHelp}>
        Help
      </button>
      {known.kind === 'session' && (
        <button type="button" onClick={() => void logOut()}>
          Log out
        </button>
      )}
    </Menu>
  );
}
