/** The page of each address. Its script is loaded when it is first shown, so that none of them waits for the others. */
import type { VNode, ComponentChildren } from 'preact';
import { useErrorBoundary, useEffect, useState } from 'preact/hooks';
import { connection, Problem, problemFrom, returned } from './api.ts';
import { useObserved } from './observed.ts';
import { Busy, Failure, Link } from './parts.tsx';
import { pageNames, type PageName, type Place } from './place.ts';
import { needOf } from './rail.tsx';
import { may, session } from './session.ts';

type View = (at: Place) => VNode;

const loaders: Readonly<Record<PageName, () => Promise<View>>> = {
  overview: async () => {
    const { OverviewPage } = await import('./overview.tsx');
    return () => <OverviewPage />;
  },
  buckets: async () => {
    const { BucketsPage } = await import('./buckets.tsx');
    return ({ choices: { add } }) => <BucketsPage key={add} add={add} />;
  },
  bucket: async () => {
    const { BucketPage } = await import('./bucket.tsx');
    return ({ choices }) => <BucketPage key={choices['bucket']} choices={choices} />;
  },
  doctor: async () => {
    const { DoctorPage } = await import('./doctor.tsx');
    return ({ choices: { bucket = '' } }) => <DoctorPage key={bucket} bucket={bucket} />;
  },
  search: async () => {
    const { SearchPage } = await import('./search.tsx');
    return ({ choices }) => <SearchPage choices={choices} />;
  },
  usage: async () => {
    const { UsagePage } = await import('./usage.tsx');
    return ({ choices }) => <UsagePage choices={choices} />;
  },
  object: async () => {
    const { ObjectPage } = await import('./object.tsx');
    return ({ choices: { bucket = '', key = '' } }) => <ObjectPage bucket={bucket} name={key} />;
  },
  jobs: async () => {
    const { JobsPage } = await import('./jobs.tsx');
    return ({ choices: { bucket = '' } }) => <JobsPage bucket={bucket} />;
  },
  job: async () => {
    const { JobPage } = await import('./job.tsx');
    return ({ choices: { id = '' } }) => <JobPage key={id} id={id} />;
  },
  gaps: async () => {
    const { GapsPage } = await import('./gaps.tsx');
    return ({ choices }) => <GapsPage choices={choices} />;
  },
  letters: async () => {
    const { LettersPage } = await import('./letters.tsx');
    return () => <LettersPage />;
  },
  keys: async () => {
    const { KeysPage } = await import('./keys.tsx');
    return () => <KeysPage />;
  },
  'all-keys': async () => {
    const { AllKeysPage } = await import('./all-keys.tsx');
    return ({ choices }) => <AllKeysPage choices={choices} />;
  },
  access: async () => {
    const { AccessPage } = await import('./access.tsx');
    return ({ choices }) => <AccessPage choices={choices} />;
  },
  users: async () => {
    const { UsersPage } = await import('./users.tsx');
    return () => <UsersPage />;
  },
  audit: async () => {
    const { AuditPage } = await import('./audit.tsx');
    return ({ choices }) => <AuditPage choices={choices} />;
  },
  health: async () => {
    const { HealthPage } = await import('./health.tsx');
    return () => <HealthPage />;
  },
  unknown: async () => () => <UnknownPage />,
};

const views = new Map<PageName, View>();

/** Loads the script of a page, if it is not there yet. Throws a Problem. */
export async function loadPage(page: PageName): Promise<void> {
  if (views.has(page)) return;
  try {
    views.set(page, await loaders[page]());
  } catch {
    connection.set('lost');
    throw new Problem('this page could not be loaded', 'page.not-loaded', {
      advice: 'Load the address again: the registry may be another version by now.',
    });
  }
}

/** The first page has its moment to itself. */
const AHEAD_MS = 3_000;

/** Loads the other pages once there is nothing else to do, so that each opens at once, and while the registry is away too. */
export function loadAhead(): void {
  setTimeout(() => {
    for (const page of pageNames) requestIdleCallback(() => void loadPage(page).catch(() => undefined));
  }, AHEAD_MS);
}

/** The page, or why it is not shown. */
export function Page({ at }: { readonly at: Place }) {
  const { page } = at;
  const [, draw] = useState({});
  const [problem, setProblem] = useState<Problem>();
  const load = (): void => {
    setProblem(undefined);
    loadPage(page).then(
      () => draw({}),
      (error: unknown) => setProblem(problemFrom(error)),
    );
  };
  const view = views.get(page);
  const back = useObserved(returned);
  useEffect(() => {
    if (view === undefined) load();
  }, [page, back]);
  const needs = needOf(page);
  if (needs !== undefined && !may(needs)) return <NotPermitted />;
  if (view !== undefined) return view(at);
  return problem === undefined ? <Busy /> : <Failure problem={problem} retry={load} />;
}

/** A page that cannot be drawn says so, and does not take the others with it. */
export function Guarded({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => reset(), [href]);
  return error === undefined ? <>{children}</> : <Failure problem={problemFrom(error)} retry={reset} />;
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
