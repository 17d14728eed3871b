/** The page of each address. Its script loads when the page is first shown, so that no page waits for another's. */
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { isAway, Problem, problemFrom } from './api.ts';
import { useLoaded } from './load.ts';
import { Failure, Shown } from './parts.tsx';
import { factsOf, type Choices, type PageName, type Place } from './place.ts';
import { may } from './session.ts';

type View = (props: { readonly choices: Choices }) => VNode;

const scripts: Readonly<Record<PageName, () => Promise<View>>> = {
  overview: async () => (await import('./overview.tsx')).OverviewPage,
  buckets: async () => (await import('./buckets.tsx')).BucketsPage,
  bucket: async () => (await import('./bucket.tsx')).BucketPage,
  add: async () => (await import('./connect.tsx')).AddBucketPage,
  search: async () => (await import('./search.tsx')).SearchPage,
  object: async () => (await import('./object.tsx')).ObjectPage,
  activity: async () => (await import('./activity.tsx')).ActivityPage,
  job: async () => (await import('./job.tsx')).JobPage,
  letters: async () => (await import('./letters.tsx')).LettersPage,
  keys: async () => (await import('./keys.tsx')).KeysPage,
  people: async () => (await import('./people.tsx')).PeoplePage,
  audit: async () => (await import('./audit.tsx')).AuditPage,
  unknown: async () => () => <Message heading="No such page">The panel has no page at this address. Choose one from the menu.</Message>,
};

/** Loads the script of a page, once. Throws a Problem. */
export async function loadPage(page: PageName): Promise<View> {
  try {
    return await scripts[page]();
  } catch {
    isAway.set(true);
    throw new Problem('this page could not be loaded', 'page.not-loaded', {
      advice: 'Load the address again once the registry answers.',
    });
  }
}

/** The page, or why it is not shown. */
export function Page({ at: { page, choices } }: { readonly at: Place }) {
  const loaded = useLoaded(`page ${page}`, () => loadPage(page), { freshMs: Number.POSITIVE_INFINITY });
  const { needs } = factsOf(page);
  if (needs !== undefined && !may(needs))
    return <Message heading="Not permitted">You lack the rights for this page. Ask an administrator.</Message>;
  // nothing stays of another bucket or job
  return (
    <Shown loaded={loaded}>{(View) => <View key={`${page} ${choices['bucket'] ?? ''} ${choices['id'] ?? ''}`} choices={choices} />}</Shown>
  );
}

/** A page that cannot be drawn says so, without breaking the others. */
export function Guarded({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => reset(), [href]);
  return error === undefined ? <>{children}</> : <Failure problem={problemFrom(error)} retry={reset} />;
}

function Message({ heading, children }: { readonly heading: string; readonly children: string }) {
  return (
    <>
      <h1>{heading}</h1>
      <p>{children}</p>
    </>
  );
}
