/** Where a person can go: the rail at the left, which a telephone opens over the page, and the menu of the person. */
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiKey } from '../../api/api-keys.ts';
import { useBuckets } from './all-buckets.ts';
import { call, problemFrom, sessionEnded } from './api.ts';
import { forget, useLoaded } from './load.ts';
import { Menu } from './menu.tsx';
import { useObserved } from './observed.ts';
import { announce, Link, Text } from './parts.tsx';
import { factsOf, pages, place, type PageName } from './place.ts';
import { may, session } from './session.ts';
import { shortcuts } from './shortcuts.ts';
import { theme, themes } from './theme.ts';
import { numberText, zone } from './words.ts';

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

export function Rail({ page, onHelp }: { readonly page: PageName; readonly onHelp: () => void }) {
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
      <PersonMenu onHelp={onHelp} />
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
