/** What surrounds every page: who the person is, where they can go, and how the registry answers. */
import type { ComponentChildren } from 'preact';
import { useEffect, useErrorBoundary, useState } from 'preact/hooks';
import type { ApiKey } from '../../api/api-keys.ts';
import { printable } from '../../domain/printable.ts';
import type { SessionAnswer } from '../../api/login.ts';
import { addressOf, call, connection, problemFrom, returned, sessionEnded, type Key, type Problem } from './api.ts';
import { AllKeysPage } from './all-keys.tsx';
import { AuditPage } from './audit.tsx';
import { BucketPage } from './bucket.tsx';
import { BucketsPage } from './buckets.tsx';
import { DoctorPage } from './doctor.tsx';
import { keepFocus } from './focus.ts';
import { GapsPage } from './gaps.tsx';
import { HealthPage } from './health.tsx';
import { JobPage } from './job.tsx';
import { JobsPage } from './jobs.tsx';
import { daysLeft, endsSoon, KeysPage } from './keys.tsx';
import { LettersPage } from './letters.tsx';
import { useLoaded, visible } from './load.ts';
import { ObjectPage } from './object.tsx';
import { useObserved } from './observed.ts';
import { announce, Announcements, Busy, Dialog, Failure, Link, Text } from './parts.tsx';
import { go, hrefOf, leftByOf, pages, place, scrollOf, type PageName, type Place } from './place.ts';
import { SearchPage } from './search.tsx';
import { loginAddress, may, session } from './session.ts';
import { listen, shortcuts, shortcutTexts } from './shortcuts.ts';
import { UsersPage } from './users.tsx';
import { zone } from './words.ts';

/** The pages of the navigation, each with an operation that it cannot do without. */
const navigation: readonly (readonly [page: PageName, needs: Key])[] = [
  ['buckets', 'GET /v1/buckets'],
  ['search', 'GET /v1/objects'],
  ['jobs', 'GET /v1/jobs'],
  ['gaps', 'GET /v1/gaps'],
  ['letters', 'GET /v1/dead-letters'],
  ['keys', 'GET /v1/api-keys'],
  ['all-keys', 'GET /v1/admin/api-keys'],
  ['users', 'GET /v1/admin/users'],
  ['audit', 'GET /v1/admin/audit'],
  ['health', 'GET /readyz'],
];

/** As many parts of buckets as fit into a line or two. */
const SHOWN_PARTS = 5;

/** While the registry does not answer, it gets a request this often. */
const RETRY_MS = 3_000;

export function Shell() {
  const [problem, setProblem] = useState<Problem>();
  const [round, again] = useState(0);
  const known = useObserved(session);
  const hasEnded = useObserved(sessionEnded);
  const answers = useObserved(connection);
  useEffect(() => {
    const end = new AbortController();
    setProblem(undefined);
    call('GET /v1/session', {}, end.signal).then(
      (value) => session.set(value),
      (error: unknown) => {
        if (!end.signal.aborted) setProblem(problemFrom(error));
      },
    );
    return () => end.abort();
  }, [round]);
  useEffect(() => {
    if (answers !== 'lost') return undefined;
    const timer = setInterval(() => {
      if (!visible.read()) return;
      call('GET /v1/session', {}).then(
        (value) => {
          session.set(value);
          returned.set(returned.read() + 1);
        },
        // it is still away, or the session has ended: both are shown already
        () => undefined,
      );
    }, RETRY_MS);
    return () => clearInterval(timer);
  }, [answers]);
  if (known !== undefined) {
    return (
      <>
        <Frame />
        {hasEnded && <SessionEndedDialog known={known} />}
      </>
    );
  }
  return (
    <main class="alone">
      <h1>Tally</h1>
      {problem === undefined && !hasEnded && <Busy />}
      {hasEnded && <LoginOffer />}
      {problem !== undefined && problem.code !== 'authentication.failed' && <Failure problem={problem} retry={() => again(round + 1)} />}
    </main>
  );
}

/**
 * A session that ends takes nothing with it that was typed: the page stays, and continues after a login in another tab. Another
 * person begins with a new page.
 */
function SessionEndedDialog({ known }: { readonly known: SessionAnswer }) {
  const [problem, setProblem] = useState<Problem>();
  const isSeen = useObserved(visible);
  async function check(): Promise<void> {
    try {
      const now = await call('GET /v1/session', {});
      if (now.user.id !== known.user.id || now.role !== known.role) {
        location.reload();
        return;
      }
      sessionEnded.set(false);
      returned.set(returned.read() + 1);
    } catch (error) {
      const found = problemFrom(error);
      // the person has not logged in yet
      setProblem(found.code === 'authentication.failed' ? undefined : found);
    }
  }
  useEffect(() => {
    if (isSeen) void check();
  }, [isSeen]);
  return (
    <Dialog title="Your session has ended" onClose={() => undefined}>
      <p>What you typed is still here. Log in in another tab, and come back to this one: the page continues.</p>
      {problem !== undefined && <Failure problem={problem} />}
      {/* only a login ends it: Escape does not close it */}
      <div class="actions" data-acting="true">
        <a role="button" href={loginAddress()} target="_blank" rel="noopener">
          Log in
        </a>
        <button type="button" class="secondary outline" onClick={() => void check()}>
          Continue
        </button>
      </div>
    </Dialog>
  );
}

function LoginOffer() {
  return (
    <>
      <p>Buckets, and the search of what is in them.</p>
      <p>
        <a role="button" href={loginAddress()}>
          Log in
        </a>
      </p>
    </>
  );
}

function Frame() {
  const here = useObserved(place);
  const [isHelp, setHelp] = useState(false);
  useEffect(
    () =>
      listen({
        toHelp: () => setHelp(true),
        toSearch: () => {
          if (place.read().page !== 'search') go(hrefOf('search'));
          requestAnimationFrame(() => document.querySelector<HTMLElement>('#search-box')?.focus());
        },
      }),
    [],
  );
  useEffect(() => keepFocus(), []);
  useEffect(() => {
    document.title = `${titleOf(here)} · Tally`;
    // what was loaded before is drawn already
    if (here.isReturn) requestAnimationFrame(() => returnTo(here.href));
    // the link that led here may be gone, and with it the focus
    if (document.activeElement === document.body) document.querySelector<HTMLElement>('#content')?.focus({ preventScroll: true });
  }, [here]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Header onHelp={() => setHelp(true)} page={here.page} />
      <ConnectionBanner />
      <AccessBanner />
      <KeysBanner />
      <main id="content" tabIndex={-1}>
        <Guarded href={here.href}>
          <Page at={here} />
        </Guarded>
      </main>
      <Announcements />
      {isHelp && <HelpDialog onClose={() => setHelp(false)} />}
    </>
  );
}

/** A page that cannot be drawn says so, and does not take the others with it. */
function Guarded({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => reset(), [href]);
  return error === undefined ? <>{children}</> : <Failure problem={problemFrom(error)} retry={reset} />;
}

/** Shows a place as it was left: scrolled to where it was, with the focus on the row that was opened. */
function returnTo(href: string): void {
  const opened = leftByOf(href);
  const row = [...document.querySelectorAll<HTMLElement>('a[data-row]')].find((each) => each.getAttribute('href') === opened);
  row?.focus({ preventScroll: true });
  scrollTo(0, scrollOf(href));
}

/** A tab shows less. */
const TITLE_LENGTH_MAX = 200;

function titleOf({ page, choices }: Place): string {
  const about = choices['key'] ?? choices['bucket'] ?? choices['query'] ?? choices['q'] ?? choices['id'];
  return about === undefined ? pages[page] : `${printable(about, TITLE_LENGTH_MAX)} · ${pages[page]}`;
}

function Page({ at: { page, choices, href } }: { readonly at: Place }) {
  const { bucket = '', key = '', id = '' } = choices;
  switch (page) {
    case 'buckets':
      return <BucketsPage />;
    case 'bucket':
      return <BucketPage key={href} name={bucket} />;
    case 'doctor':
      return may('GET /v1/buckets/{bucket}/doctor') ? <DoctorPage key={href} bucket={bucket} /> : <NotPermitted />;
    case 'search':
      return <SearchPage choices={choices} />;
    case 'object':
      return <ObjectPage bucket={bucket} name={key} />;
    case 'jobs':
      return may('GET /v1/jobs') ? <JobsPage bucket={bucket} /> : <NotPermitted />;
    case 'job':
      return may('GET /v1/jobs/{id}') ? <JobPage key={id} id={id} /> : <NotPermitted />;
    case 'gaps':
      return may('GET /v1/gaps') ? <GapsPage choices={choices} /> : <NotPermitted />;
    case 'unknown':
      return <UnknownPage />;
    case 'letters':
    case 'keys':
    case 'all-keys':
    case 'users':
    case 'audit':
    case 'health':
      return <AdminPage page={page} choices={choices} />;
  }
}

function AdminPage({
  page,
  choices,
}: {
  readonly page: Exclude<PageName, 'buckets' | 'bucket' | 'doctor' | 'search' | 'object' | 'jobs' | 'job' | 'gaps' | 'unknown'>;
  readonly choices: Place['choices'];
}) {
  const needs = navigation.find(([each]) => each === page)?.[1];
  if (needs !== undefined && !may(needs)) return <NotPermitted />;
  switch (page) {
    case 'letters':
      return <LettersPage />;
    case 'keys':
      return <KeysPage />;
    case 'all-keys':
      return <AllKeysPage choices={choices} />;
    case 'users':
      return <UsersPage />;
    case 'audit':
      return <AuditPage choices={choices} />;
    case 'health':
      return <HealthPage />;
  }
}

function UnknownPage() {
  return (
    <>
      <h1>No such page</h1>
      <p>
        The address names a page that the panel does not have. <Link page="buckets">Show the buckets</Link>
      </p>
    </>
  );
}

function NotPermitted() {
  return (
    <>
      <h1>Not permitted</h1>
      <p>This page needs other rights than yours{session.read()?.kind === 'local' ? ': a login, and this registry has none' : ''}.</p>
    </>
  );
}

function Header({ page, onHelp }: { readonly page: PageName; readonly onHelp: () => void }) {
  const inZone = useObserved(zone);
  const keys = useObserved(shortcuts);
  const known = session.read();
  async function logOut(): Promise<void> {
    try {
      await call('POST /login/logout', {});
      session.set(undefined);
      sessionEnded.set(true);
    } catch (error) {
      announce(problemFrom(error).message);
    }
  }
  return (
    <header class="top">
      <strong class="brand">Tally</strong>
      <div class="person">
        <button type="button" class="outline small" onClick={() => zone.set(inZone === 'utc' ? 'local' : 'utc')}>
          Times: {inZone === 'utc' ? 'UTC' : 'local'}
        </button>
        <button
          type="button"
          class="outline small"
          aria-pressed={keys === 'on'}
          onClick={() => shortcuts.set(keys === 'on' ? 'off' : 'on')}
        >
          Shortcuts
        </button>
        <button type="button" class="outline small" onClick={onHelp}>
          Help
        </button>
        {known !== undefined && (
          <small>
            <Text>{known.user.email}</Text>
            {known.user.email_verified === false && ' (not verified)'} ({known.role})
          </small>
        )}
        {known?.kind === 'session' && (
          <button type="button" class="outline small" onClick={() => void logOut()}>
            Log out
          </button>
        )}
      </div>
      <nav aria-label="Pages">
        <ul>
          {navigation
            .filter(([, needs]) => may(needs))
            .map(([each]) => (
              <li key={each}>
                <Link page={each} isCurrent={each === page}>
                  {pages[each]}
                </Link>
              </li>
            ))}
        </ul>
      </nav>
    </header>
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
  const isAsked = may('GET /v1/api-keys');
  const read = async (signal: AbortSignal): Promise<readonly ApiKey[]> =>
    isAsked ? (await call('GET /v1/api-keys', { query: { status: 'ACTIVE' } }, signal)).items.filter(endsSoon) : [];
  const { value = [] } = useLoaded('keys that end soon', read);
  const [first] = value;
  if (first === undefined) return null;
  return (
    <aside class="banner" aria-label="Keys that end soon">
      Your API key <Text>{first.name}</Text> ends in {daysLeft(first, Date.now())}
      {value.length > 1 && `, and ${value.length - 1} more end soon`}. <Link page="keys">Show your keys</Link>
    </aside>
  );
}

function HelpDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Help" onClose={onClose}>
      <dl>
        {shortcutTexts.map(([pressed, text]) => (
          <div key={pressed}>
            <dt>
              <kbd>{pressed}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p>
        Whatever this page does, scripts can do by the <a href={addressOf('GET /openapi.json', {}).href}>same API</a>.
      </p>
      <div class="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
