/** Reads from the registry while a component is shown, with TanStack Query, through one hook. */
import { focusManager, notifyManager, QueryClient, QueryObserver } from '@tanstack/query-core';
import { useCallback, useLayoutEffect, useState } from 'preact/hooks';
import { call, problemFrom, returned, type AnswerTo, type Key, type Problem, type RequestTo } from './api.ts';
import { observed } from './observed.ts';

/** The most entries of a list's page. */
export const PAGE_MAX = 1_000;

export interface Loaded<Value> {
  readonly value: Value | undefined;
  /** Why the latest read failed. */
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  /** When the value was read. */
  readonly atMs: number | undefined;
  readonly reload: () => void;
}

/** Whether the page is visible. Repeated reads wait while it isn't. */
const visible = observed(document.visibilityState === 'visible');

document.addEventListener('visibilitychange', () => visible.set(document.visibilityState === 'visible'));
focusManager.setEventListener((changed) => visible.watch(() => changed(visible.read())));
// an answer is drawn in the task that received it
notifyManager.setScheduler(queueMicrotask);

/** The values of places that the person has left, for when they return. */
const KEPT_MS = 10 * 60_000;

const client = new QueryClient({
  defaultOptions: {
    queries: { retry: false, networkMode: 'always', gcTime: KEPT_MS, refetchOnWindowFocus: false, refetchOnReconnect: false },
  },
});

/** Reads everything shown once more. */
export function readAgain(): void {
  void client.refetchQueries({ type: 'active' });
}

// whatever was shown while the registry was unreachable is old or failed
returned.watch(readAgain);

/** Forgets what was read, because the person has changed. */
export function forget(): void {
  client.clear();
}

interface Wishes {
  /** How often to read again while the page is visible. Absent: read once. */
  readonly everyMs?: number | undefined;
  /** Nothing is read while this is false. */
  readonly isWanted?: boolean;
  /** A value that was read this recently isn't read again. */
  readonly freshMs?: number;
}

/**
 * Reads a value. `key` identifies it: under another key, nothing of the earlier value is shown. After a failed read, the same key's value
 * stays, with its time.
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
  // already before the first paint
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
