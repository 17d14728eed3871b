/** Reading from the registry while a component is shown: TanStack Query, with a hook for one value and one for a list in pages. */
import {
  focusManager,
  hashKey,
  InfiniteQueryObserver,
  notifyManager,
  QueryClient,
  QueryObserver,
  type DefaultedInfiniteQueryObserverOptions,
  type InfiniteData,
} from '@tanstack/query-core';
import { useCallback, useLayoutEffect, useMemo, useState } from 'preact/hooks';
import {
  call,
  callPage,
  problemFrom,
  returned,
  type AnswerTo,
  type ItemOf,
  type Key,
  type PageOf,
  type Problem,
  type RequestTo,
} from './api.ts';
import { observed } from './observed.ts';
import { place } from './place.ts';

export interface Loaded<Value> {
  readonly value: Value | undefined;
  /** The latest read failed. */
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  /** When the value was read. */
  readonly atMs: number | undefined;
  readonly reload: () => void;
}

/** Whether the page can be seen: what is read again and again waits until then. */
const visible = observed(document.visibilityState === 'visible');

document.addEventListener('visibilitychange', () => visible.set(document.visibilityState === 'visible'));
focusManager.setEventListener((changed) => visible.watch(() => changed(visible.read())));
// an answer is drawn in the task in which it came
notifyManager.setScheduler(queueMicrotask);

/** Values of places that were left, for those who come back. */
const KEPT_MS = 10 * 60_000;

const client = new QueryClient({
  defaultOptions: {
    queries: { retry: false, networkMode: 'always', gcTime: KEPT_MS, refetchOnWindowFocus: false, refetchOnReconnect: false },
  },
});

// what failed while the registry was away is read again, and single values too, which may be old
returned.watch(
  () => void client.refetchQueries({ type: 'active', predicate: ({ state, queryKey }) => state.error !== null || queryKey[1] === 'value' }),
);

/** Forgets what was read, for another person. */
export function forget(): void {
  client.clear();
}

interface Wishes {
  /** Reads again this often while the page is visible. Absent: once. */
  readonly everyMs?: number | undefined;
  /** Not read while this is false. */
  readonly isWanted?: boolean;
  /** What was read this recently is not read again. */
  readonly freshMs?: number;
}

/** Throws a Problem, or the reason of the signal. */
async function readOf<Value>(read: (signal: AbortSignal) => Promise<Value>, signal: AbortSignal): Promise<Value> {
  try {
    return await read(signal);
  } catch (error) {
    throw signal.aborted ? error : problemFrom(error);
  }
}

/** Draws again with each change of what is observed, from before the first paint on. */
function useDraw(watch: (draw: () => void) => () => void, on: unknown): void {
  const [, draw] = useState({});
  useLayoutEffect(() => watch(() => draw({})), [on]);
}

/**
 * Reads a value. `key` identifies what is read: under another key nothing of the value before is shown. After a read that failed
 * the value of the same key stays, with its time.
 */
export function useLoaded<Value>(key: string, read: (signal: AbortSignal) => Promise<Value>, wishes: Wishes = {}): Loaded<Value> {
  const { everyMs, isWanted = true, freshMs = 0 } = wishes;
  const options = client.defaultQueryOptions<Value, Problem, Value, Value, readonly string[]>({
    queryKey: [key, 'value'],
    queryFn: ({ signal }) => readOf(read, signal),
    enabled: isWanted,
    staleTime: freshMs,
    refetchInterval: everyMs ?? false,
    refetchOnWindowFocus: everyMs === undefined ? false : 'always',
  });
  options._optimisticResults = 'optimistic';
  const [observer] = useState(() => new QueryObserver(client, options));
  const result = observer.getOptimisticResult(options);
  useDraw((draw) => observer.subscribe(draw), observer);
  useLayoutEffect(() => observer.setOptions(options));
  const reload = useCallback(() => void observer.refetch({ cancelRefetch: true }), [observer]);
  return {
    value: result.data,
    problem: result.error ?? undefined,
    isLoading: result.isFetching,
    atMs: result.dataUpdatedAt === 0 ? undefined : result.dataUpdatedAt,
    reload,
  };
}

/** Reads what an operation answers. */
export function useAnswer<K extends Key>(key: K, request: RequestTo<K>, wishes?: Wishes): Loaded<AnswerTo<K>> {
  return useLoaded(`${key} ${JSON.stringify(request)}`, (signal) => call(key, request, signal), wishes);
}

export interface Pages<Item, First = unknown> extends Omit<Loaded<First>, 'value' | 'atMs'> {
  readonly items: readonly Item[] | undefined;
  /** The first page, for what it has besides its items. */
  readonly first: First | undefined;
  /** Reads the next page; absent: there is none. */
  readonly more: (() => void) | undefined;
}

type Cursor = string | undefined;

interface PagesWishes {
  /** What only the request of the first page has. */
  readonly first?: object;
  /** Not read while this is false. */
  readonly isWanted?: boolean;
}

/** Reads a list page by page. Of another request, and after an error, nothing of the rows before is shown. */
export function usePages<K extends Key>(
  key: K,
  request: RequestTo<K>,
  { first = {}, isWanted = true }: PagesWishes = {},
): Pages<ItemOf<K>, PageOf<K>> {
  type Read = InfiniteData<PageOf<K>, Cursor>;
  const queryKey = [`${key} ${JSON.stringify(request)}`, 'pages'] as const;
  const [id] = queryKey;
  // the pages that were read are kept for a person who comes back to the place
  useMemo(() => {
    if (!place.read().isReturn) client.removeQueries({ queryKey, type: 'inactive' });
  }, [id]);
  const options: DefaultedInfiniteQueryObserverOptions<PageOf<K>, Problem, Read, readonly string[], Cursor> = {
    queryKey,
    queryHash: hashKey(queryKey),
    queryFn: ({ pageParam: cursor, signal }) =>
      readOf((ends) => callPage(key, request, cursor === undefined ? first : { cursor }, ends), signal),
    enabled: isWanted,
    initialPageParam: undefined,
    getNextPageParam: (last) => last.next,
    // to come back is not to ask again
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
    refetchOnReconnect: false,
    throwOnError: false,
    _optimisticResults: 'optimistic',
  };
  const [observer] = useState(() => new InfiniteQueryObserver<PageOf<K>, Problem, Read, readonly string[], Cursor>(client, options));
  const { data, error, isFetching, hasNextPage } = observer.getOptimisticResult(options);
  useDraw((draw) => observer.subscribe(draw), observer);
  useLayoutEffect(() => observer.setOptions(options));
  const items = useMemo(() => data?.pages.flatMap((page) => page.items), [data]);
  const more = useCallback(() => void observer.fetchNextPage({ cancelRefetch: false }), [observer]);
  const reload = useCallback(() => {
    client.setQueryData<Read>(
      queryKey,
      (before) => before && { pages: before.pages.slice(0, 1), pageParams: before.pageParams.slice(0, 1) },
    );
    void observer.refetch();
  }, [observer, id]);
  return {
    items: error === null ? items : undefined,
    first: error === null ? data?.pages[0] : undefined,
    problem: error ?? undefined,
    isLoading: isFetching,
    more: hasNextPage ? more : undefined,
    reload,
  };
}
