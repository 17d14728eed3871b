/**
 * The frame around every page: who the person is, where they can go, and whether the registry answers.
 *
 *   address ──► place.ts ──► pages.tsx loads the page ──► load.ts reads through api.ts ──► the page shows the answer, and reads again
 *
 * The panel is an ordinary client of the API. `Text` shows every text of an answer, never as markup.
 */
import { useEffect } from 'preact/hooks';
import type { SessionAnswer } from '../../registry/contract/login.ts';
import { printable } from '../../base/texts.ts';
import { call, isAway, returned, sessionEnded } from './api.ts';
import { useLoaded, type Loaded } from './load.ts';
import { useObserved } from './observed.ts';
import { Guarded, Page } from './pages.tsx';
import { Announcements, Busy, Dialog, Failure, Text } from './parts.tsx';
import { leftBy, pages, place, type Place } from './place.ts';
import { MenuButton, Rail } from './rail.tsx';
import { SearchBox } from './search-box.tsx';
import { loginAddress, may, session } from './session.ts';

/** How often to ask a registry that doesn't answer. */
const RETRY_MS = 3_000;
/** How often to check whether an ended session has begun again, apart from whenever the page becomes visible. */
const ENDED_MS = 3_600_000;

export function Shell() {
  const known = useObserved(session);
  const hasEnded = useObserved(sessionEnded);
  const isLost = useObserved(isAway);
  async function read(signal: AbortSignal): Promise<SessionAnswer> {
    const now = await call('GET /v1/session', {}, signal);
    // a different person starts with a new page
    if (known !== undefined && (now.user.id !== known.user.id || now.role !== known.role)) location.reload();
    else if (hasEnded) {
      sessionEnded.set(false);
      returned.set(returned.read() + 1);
    }
    session.set(now);
    return now;
  }
  const loaded = useLoaded('session', read, { everyMs: isLost ? RETRY_MS : hasEnded ? ENDED_MS : undefined });
  if (known !== undefined) {
    return (
      <>
        <Frame />
        {hasEnded && <SessionEndedDialog of={loaded} />}
      </>
    );
  }
  return (
    <main class="alone">
      <h1>Tally</h1>
      {loaded.problem === undefined && !hasEnded && <Busy />}
      {hasEnded && (
        <>
          <p>Search the S3 buckets of {location.host}, and see whether the index agrees with S3.</p>
          <a role="button" href={loginAddress()}>
            Log in
          </a>
        </>
      )}
      {loaded.problem !== undefined && <Failure problem={loaded.problem} retry={loaded.reload} />}
    </main>
  );
}

/** When a session ends, the page keeps what was typed, and continues after a login in another tab. */
function SessionEndedDialog({ of: { problem, reload } }: { readonly of: Loaded<SessionAnswer> }) {
  return (
    <Dialog title="Your session has ended" isKept onClose={() => undefined}>
      <p>What you typed is still here. Log in in another tab, then continue in this one.</p>
      {problem !== undefined && <Failure problem={problem} />}
      <div class="actions">
        <a role="button" href={loginAddress()} target="_blank" rel="noopener">
          Log in
        </a>
        <button type="button" class="outline" onClick={reload}>
          Continue
        </button>
      </div>
    </Dialog>
  );
}

/** The current place. The home page of people who only read is the search. */
function usePlace(): Place {
  const here = useObserved(place);
  return here.isHome && !may('GET /v1/gaps') ? { ...here, page: 'search' } : here;
}

function Frame() {
  const here = usePlace();
  useEffect(() => {
    document.title = `${titleOf(here)} · Tally`;
    // a page that was already loaded is drawn at once
    if (here.isReturn) leftBy()?.focus({ preventScroll: true });
    // the link that led here may be gone, and the focus with it
    if (document.activeElement === document.body) document.querySelector<HTMLElement>('#content')?.focus({ preventScroll: true });
  }, [here]);
  return (
    <div class="frame">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <Rail page={here.page} />
      <div class="stage">
        <header class="topbar">
          <MenuButton />
          <SearchBox at={here} />
        </header>
        <main id="content" tabIndex={-1}>
          <Guarded href={here.href}>
            <Page at={here} />
          </Guarded>
        </main>
        <div class="banners">
          <div role="status">
            {useObserved(isAway) && (
              <p class="banner">The registry does not answer. This page may be out of date, and updates as soon as it answers.</p>
            )}
          </div>
          <AccessBanner />
        </div>
      </div>
      <Announcements />
    </div>
  );
}

/** More than a tab shows. */
const TITLE_LENGTH_MAX = 200;

function titleOf({ page, choices }: Place): string {
  const about = choices['key'] ?? choices['bucket'] ?? choices['query'] ?? choices['q'] ?? choices['id'];
  const { title } = pages[page];
  return about === undefined ? title : `${printable(about, TITLE_LENGTH_MAX)} · ${title}`;
}

/** What a person with limited access may read, so that nobody takes a part for the whole. */
function AccessBanner() {
  const value = useObserved(session);
  if (value === undefined || value.reads.includes('*')) return null;
  const { reads, advice } = value;
  return (
    <aside class="banner" aria-label="What you may read">
      {advice ?? (
        <>
          Searches, sums and changes cover only these parts. <Text>{`You may read ${reads.join(', ')}`}</Text>
        </>
      )}
    </aside>
  );
}
