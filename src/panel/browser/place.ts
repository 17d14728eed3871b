/** Where the person is: a page and its choices, all of it in the query string, so that each state is a link. */
import type { Key } from './api.ts';
import { observed } from './observed.ts';

interface PageFacts {
  readonly title: string;
  /** The operation without which it has nothing to show. */
  readonly needs?: Key;
  /** The page of the rail that it belongs to; absent: the rail has it itself. */
  readonly within?: string;
}

/** Every page; the rail has them in this order. */
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

/** What is known of a page. */
export function factsOf(page: PageName): PageFacts {
  return pages[page];
}

export type Choices = Readonly<Record<string, string>>;

export interface Place {
  readonly page: PageName;
  readonly choices: Choices;
  /** Identifies the place: an address of the same place is the same text. */
  readonly href: string;
  /** Whether the person came back to it: then it looks as it was left. */
  readonly isReturn: boolean;
  /** Whether the address names no page. */
  readonly isHome: boolean;
}

function pageOf(query: URLSearchParams): PageName {
  const page = query.get('page') ?? 'overview';
  return isPage(page) ? page : 'unknown';
}

function isPage(name: string): name is PageName {
  return Object.hasOwn(pages, name);
}

function read(isReturn: boolean): Place {
  const query = new URLSearchParams(location.search);
  const choices = Object.fromEntries([...query].filter(([name]) => name !== 'page'));
  return { page: pageOf(query), choices, href: location.search, isReturn, isHome: query.get('page') === null };
}

export const place = observed<Place>(read(false));

addEventListener('popstate', () => place.set(read(true)));

/** The address of a page, relative to this one. */
export function hrefOf(page: PageName, choices: Readonly<Record<string, string | undefined>> = {}): string {
  const query = new URLSearchParams({ page });
  for (const [name, value] of Object.entries(choices)) if (value !== undefined && value !== '') query.set(name, value);
  return `?${query.toString()}`;
}

/** How a place was left, for those who come back: where it was scrolled to, and the address that led away from it. */
interface Left {
  readonly y: number;
  readonly by?: string | undefined;
}
const left = new Map<string, Left>();
/** More places than anyone goes back. */
const LEFT_MAX = 50;

function remember(by?: string): void {
  const { href } = place.read();
  const before = left.get(href);
  left.delete(href);
  left.set(href, { y: scrollY, by: by ?? before?.by });
  const [oldest] = left.keys();
  if (left.size > LEFT_MAX && oldest !== undefined) left.delete(oldest);
}

/** How the place was left. */
export function leftAs(href: string): Left {
  return left.get(href) ?? { y: 0 };
}

/** Goes to a place; Back returns. `isSamePage`: something beside what is shown changes, which stays where it is. */
export function go(href: string, isSamePage = false): void {
  remember(href);
  history.pushState(null, '', href);
  if (isSamePage) left.set(href, { y: scrollY });
  place.set({ ...read(false), isReturn: isSamePage });
  if (!isSamePage) scrollTo(0, 0);
}

addEventListener('scroll', () => remember(), { passive: true });
