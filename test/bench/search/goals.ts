/** What each kind of request of the bench `search` is to reach. */
import { atMost, type Target } from '../report.ts';

const PAGE_MS = 150;
const SUM_MS = 1_500;
/** What a person notices. Sums share the disk and the cores with writes, so these take up to twice as long beside them: tens of milliseconds. */
const LAG_MS = 1_000;

/** Sums: they read all that matches. */
const sums: ReadonlySet<string> = new Set([
  'usage',
  'usage below a folder',
  'usage by class',
  'usage by age',
  'total',
  'usage of a query',
  'facets',
  'facets of a query',
  'facets of words',
  'facets of a rare word',
]);

interface Found {
  readonly requests: readonly { readonly request: string; readonly p95Ms: number }[];
  /** The p99 of the lag of writes beside the requests. */
  readonly lagBesideMs: number;
}

/** The goals of one index. All requests but the named sums are pages. */
export function goalsOf(name: string, { requests, lagBesideMs }: Found): readonly Target[] {
  return [
    ...requests.map(({ request, p95Ms }) => atMost(`${name}, ${request}: p95, ms`, p95Ms, mostOf(request))),
    atMost(`${name}, lag of writes beside requests: p99, ms`, lagBesideMs, LAG_MS),
  ];
}

function mostOf(request: string): number {
  return sums.has(request) ? SUM_MS : PAGE_MS;
}
