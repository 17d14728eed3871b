/** Where the person is: a page and its choices, all of it in the query string, so that each state is a link. */
import { observed } from './observed.ts';

export const pages = {
  overview: 'Overview',
  buckets: 'Buckets',
  bucket: 'Bucket',
  doctor: 'Doctor',
  search: 'Search',
  usage: 'Usage',
  object: 'Object',
  jobs: 'Jobs',
  job: 'Job',
  gaps: 'Gaps',
  letters: 'Dead letters',
  keys: 'API keys',
  'all-keys': 'All API keys',
  access: 'Access',
  users: 'Users',
  audit: 'Audit',
  health: 'Health',
  unknown: 'No such page',
} as const;
export type PageName = keyof typeof pages;
export const pageNames = Object.keys(pages).filter(isPage);

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

/** Links of before usage was a page lead to it. */
function pageOf(query: URLSearchParams): PageName {
  const page = query.get('page');
  if (page === null) return 'overview';
  if (page === 'search' && query.get('view') === 'folders') return 'usage';
  return isPage(page) ? page : 'unknown';
}

function isPage(name: string | null): name is PageName {
  return name !== null && Object.hasOwn(pages, name);
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

/** Where each place was scrolled to, for those who come back. */
const scrolled = new Map<string, number>();
/** More places than anyone goes back. */
const SCROLLED_MAX = 50;

function rememberScroll(): void {
  const { href } = place.read();
  scrolled.delete(href);
  scrolled.set(href, scrollY);
  const [oldest] = scrolled.keys();
  if (scrolled.size > SCROLLED_MAX && oldest !== undefined) scrolled.delete(oldest);
}

/** Which address led away from each place: the row to return to. */
const leftBy = new Map<string, string>();

/** The address by which the place was left. */
export function leftByOf(href: string): string | undefined {
  return leftBy.get(href);
}

/** Where the place was scrolled to when it was left. */
export function scrollOf(href: string): number {
  return scrolled.get(href) ?? 0;
}

/** Goes to a place; Back returns. `isSamePage`: something beside what is shown changes, which stays where it is. */
export function go(href: string, isSamePage = false): void {
  rememberScroll();
  leftBy.set(place.read().href, href);
  if (leftBy.size > SCROLLED_MAX) leftBy.delete(leftBy.keys().next().value ?? '');
  history.pushState(null, '', href);
  place.set({ ...read(false), isReturn: isSamePage });
  if (!isSamePage) scrollTo(0, 0);
}

/** Puts another address in the place of this one. */
export function replacePlace(href: string): void {
  history.replaceState(null, '', href);
  place.set(read(false));
}

addEventListener('scroll', rememberScroll, { passive: true });
