/** Where a person can go: the rail on the left, which phones open over the page. */
import { useEffect, useRef } from 'preact/hooks';
import type { ApiKey } from '../../registry/contract/api-keys.ts';
import { countText } from '../../base/texts.ts';
import { call, sessionEnded } from './api.ts';
import { useBuckets } from './bucket-act.tsx';
import { Form } from './form.tsx';
import { forget, useAnswer } from './load.ts';
import { useObserved } from './observed.ts';
import { Link, Text } from './parts.tsx';
import { factsOf, pages, place, type PageName } from './place.ts';
import { may, session } from './session.ts';

const RAIL = 'rail';

/** The rail's pages that this person may see. */
function entries(): readonly PageName[] {
  const names = Object.keys(pages).filter((name): name is PageName => Object.hasOwn(pages, name));
  return names.filter((name) => {
    const { needs, within } = factsOf(name);
    return within === undefined && (needs === undefined || may(needs));
  });
}

/** Opens the rail on a phone. */
export function MenuButton() {
  return (
    <button type="button" class="outline menu" {...{ popovertarget: RAIL }}>
      Menu
      <Count of="buckets" />
    </button>
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

/** What is going on, and how much needs a look. */
function Count({ of }: { readonly of: PageName }) {
  const { items, activity } = useBuckets().value ?? { items: [] };
  const keys = useAnswer('GET /v1/api-keys', { query: { status: 'ACTIVE' } }, { isWanted: of === 'keys' }).value;
  const doubtful = items.map(({ status }) => status.severity).filter((severity) => severity !== 'ok');
  const counts: Partial<Record<PageName, readonly [count: number | undefined, of: string, look: string]>> = {
    buckets: [doubtful.length, 'may differ', doubtful.includes('bad') ? 'bad' : 'notable'],
    activity: [activity?.jobs, 'jobs have not ended', 'plain'],
    letters: [activity?.dead_letters, 'messages', 'bad'],
    keys: [keys?.items.filter(endsSoon).length, 'end within two weeks', 'notable'],
  };
  const [count, text, look] = counts[of] ?? [];
  if (count === undefined || count === 0) return null;
  return (
    <span class={`count ${look}`} title={text}>
      {countText(count)}
      <span class="unseen"> {text}</span>
    </span>
  );
}

/** How long before a key ends the panel warns its user, as the registry does in its answers. */
const SOON_MS = 14 * 86_400_000;

/** Whether an active key ends within two weeks. */
export function endsSoon({ status, expires_at: at }: Pick<ApiKey, 'expires_at' | 'status'>): boolean {
  return status === 'ACTIVE' && new Date(at).getTime() - Date.now() < SOON_MS;
}

/** The person's name. */
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
      {known.kind === 'session' && <Form look="outline small" onSubmit={logOut} submit="Log out" />}
    </div>
  );
}
