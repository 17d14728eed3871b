/** Reading from the registry while a component is shown: TanStack Query, with one hook. */
import { focusManager, notifyManager, QueryClient, QueryObserver } from '@tanstack/query-core';
import { useCallback, useLayoutEffect, useState } from 'preact/hooks';
import { call, problemFrom, returned, type AnswerTo, type Key, type Problem, type RequestTo } from './api.ts';
import { observed } from './observed.ts';

/** The longest page of a list. */
export const PAGE_MAX = 1_000;

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

/** Reads what is shown once more. */
export function readAgain(): void {
  void client.refetchQueries({ type: 'active' });
}

// what was shown while the registry was away is old, or failed
returned.watch(readAgain);

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

/**
 * Reads a value. `key` identifies what is read: under another key nothing of the value before is shown. After a read that failed
 * the value of the same key stays, with its time.
 */
export function useLoaded<Value>(key: string, read: (signal: AbortSignal) => Promise<Value>, wishes: Wishes = {}): Loaded<Value> {
  const { everyMs, isWanted = true, freshMs = 0 } = wishes;
  const options = client.defaultQueryOptions<Value, Problem, Value, Value, readonly string[]>({
    queryKey: [key],
    queryFn: ({ signal }) =>
      read(signal).catch((error: unknown) => {
        throw signal.aborted ? error : problemFrom(error);
      }),
    enabled: isWanted,
    staleTime: freshMs,
    refetchInterval: everyMs ?? false,
    refetchOnWindowFocus: everyMs === undefined ? false : 'always',
  });
  options._optimisticResults = 'optimistic';
  const [observer] = useState(() => new QueryObserver(client, options));
  const result = observer.getOptimisticResult(options);
  const [, draw] = useState({});
  // from before the first paint on
  useLayoutEffect(() => observer.subscribe(() => draw({})), [observer]);
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
