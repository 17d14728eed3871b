/**
 * The current place: a page and its choices, all in the query string, so that each state is a link. The browser reports each navigation
 * by links and by Back, and the page draws it. Browsers that don't report navigation load the address.
 */
import type { Key } from './api.ts';
import { observed } from './observed.ts';

interface PageFacts {
  readonly title: string;
  /** The operation that the page needs in order to show anything. */
  readonly needs?: Key;
  /** The rail's page to which it belongs; absent: it is in the rail itself. */
  readonly within?: string;
}

/** All pages, in the rail's order. */
export const pages = {
  overview: { title: 'Overview', needs: 'GET /v1/gaps' },
  buckets: { title: 'Buckets', needs: 'GET /v1/buckets' },
  bucket: { title: 'Bucket', needs: 'GET /v1/buckets', within: 'buckets' },
  add: { title: 'Add bucket', needs: 'POST /v1/buckets', within: 'buckets' },
  search: { title: 'Search', needs: 'GET /v1/objects' },
  object: { title: 'Object', needs: 'GET /v1/objects', within: 'search' },
  activity: { title: 'Activity', needs: 'GET /v1/jobs' },
  job: { title: 'Job', needs: 'GET /v1/jobs', within: 'activity' },
  letters: { title: 'Dead letters', needs: 'GET /v1/dead-letters' },
  keys: { title: 'API keys', needs: 'GET /v1/api-keys' },
  people: { title: 'People', needs: 'GET /v1/admin/users' },
  audit: { title: 'Audit', needs: 'GET /v1/admin/audit' },
  unknown: { title: 'No such page', within: '' },
} as const satisfies Readonly<Record<string, PageFacts>>;
export type PageName = keyof typeof pages;

/** What is known about a page. */
export function factsOf(page: PageName): PageFacts {
  return pages[page];
}

export type Choices = Readonly<Record<string, string>>;

export interface Place {
  readonly page: PageName;
  readonly choices: Choices;
  /** Identifies the place: addresses of the same place give the same text. */
  readonly href: string;
  /** Whether the person came back to it. */
  readonly isReturn: boolean;
  /** Whether the address names no page. */
  readonly isHome: boolean;
}

function isPage(name: string): name is PageName {
  return Object.hasOwn(pages, name);
}

function placeAt(href: string, isReturn: boolean): Place {
  const { page = 'overview', ...choices } = Object.fromEntries(new URLSearchParams(href));
  return { page: isPage(page) ? page : 'unknown', choices, href, isReturn, isHome: !new URLSearchParams(href).has('page') };
}

export const place = observed<Place>(placeAt(location.search, false));

/** The address of a page, relative to this one. */
export function hrefOf(page: PageName, choices: Readonly<Record<string, string | undefined>> = {}): string {
  const query = new URLSearchParams({ page });
  for (const [name, value] of Object.entries(choices)) if (value !== undefined && value !== '') query.set(name, value);
  return `?${query.toString()}`;
}

/** Goes to a place, from which Back returns. */
export function go(href: string): void {
  location.assign(href);
}

/** The link by which the person left this place the last time. */
export function leftBy(): HTMLAnchorElement | undefined {
  const by: unknown = navigation.currentEntry?.getState();
  return [...document.querySelectorAll<HTMLAnchorElement>('#content a')].find(({ search }) => search === by);
}

function follow(event: NavigateEvent): void {
  const { pathname, search } = new URL(event.destination.url);
  const isOther = pathname !== location.pathname || event.hashChange || event.navigationType === 'reload';
  if (isOther || !event.canIntercept) return;
  // for the person's return
  if (event.navigationType === 'push') navigation.updateCurrentEntry({ state: search });
  event.intercept({
    focusReset: 'manual',
    async handler() {
      place.set(placeAt(search, event.navigationType === 'traverse'));
      // once the page is drawn, the browser scrolls to where the person was
      await new Promise((drawn) => setTimeout(drawn));
    },
  });
}

if ('navigation' in globalThis) navigation.addEventListener('navigate', follow);
