/** Reading from the registry while a component is shown. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { problemFrom, returned, type Problem } from './api.ts';
import { observed, useObserved } from './observed.ts';
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
export const visible = observed(document.visibilityState === 'visible');

document.addEventListener('visibilitychange', () => visible.set(document.visibilityState === 'visible'));

interface Wishes {
  /** Reads again this often while the page is visible. Absent: once. */
  readonly everyMs?: number | undefined;
}

interface State<Value> {
  readonly key: string;
  readonly value?: Value | undefined;
  readonly problem?: Problem | undefined;
  readonly isLoading: boolean;
  readonly atMs?: number | undefined;
}

/** Values of places that were left, for those who come back. */
const left = new Map<string, unknown>();
/** More places than anyone goes back. */
const LEFT_MAX = 20;

function keep(key: string, value: unknown): void {
  left.delete(key);
  left.set(key, value);
  const [oldest] = left.keys();
  if (left.size > LEFT_MAX && oldest !== undefined) left.delete(oldest);
}

/**
 * Reads a value. `key` identifies what is read: under another key nothing of the value before is shown. After a read that failed
 * the value of the same key stays, with its time.
 */
export function useLoaded<Value>(key: string, read: (signal: AbortSignal) => Promise<Value>, { everyMs }: Wishes = {}): Loaded<Value> {
  const [state, set] = useState<State<Value>>({ key, isLoading: true });
  const [round, setRound] = useState(0);
  const back = useObserved(returned);
  const reader = useRef(read);
  reader.current = read;
  useEffect(() => {
    const end = new AbortController();
    set((before) => (before.key === key ? { ...before, isLoading: true } : { key, isLoading: true }));
    // an answer that takes longer than the interval is waited for: a later one would be overwritten by it
    let isReading = false;
    async function once(): Promise<void> {
      if (isReading) return;
      isReading = true;
      try {
        const value = await reader.current(end.signal);
        if (!end.signal.aborted) set({ key, value, isLoading: false, atMs: Date.now() });
      } catch (error) {
        if (!end.signal.aborted) set((before) => ({ ...before, key, problem: problemFrom(error), isLoading: false }));
      } finally {
        isReading = false;
      }
    }
    void once();
    const again = (): void => void (visible.read() && once());
    const timer = everyMs === undefined ? undefined : setInterval(again, everyMs);
    const unwatch = everyMs === undefined ? undefined : visible.watch(again);
    return () => {
      clearInterval(timer);
      unwatch?.();
      end.abort();
    };
  }, [key, round, everyMs, back]);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  const shown = state.key === key ? state : { key, isLoading: true };
  return { value: shown.value, problem: shown.problem, isLoading: shown.isLoading, atMs: shown.atMs, reload };
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}

export interface Pages<Item, First = Page<Item>> {
  readonly items: readonly Item[] | undefined;
  /** The first page, for what it has besides its items. */
  readonly first: First | undefined;
  /** When the first page was read. */
  readonly atMs: number | undefined;
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  /** Reads the next page; absent: there is none. */
  readonly more: (() => void) | undefined;
  readonly reload: () => void;
}

interface PagesState<Item, First> {
  readonly key: string;
  readonly items?: readonly Item[] | undefined;
  readonly first?: First | undefined;
  readonly atMs?: number | undefined;
  readonly next?: string | undefined;
  readonly problem?: Problem | undefined;
  readonly isLoading: boolean;
}

function keptOf<Item, First>(
  key: string,
  isItems: (value: unknown) => value is PagesState<Item, First>,
): PagesState<Item, First> | undefined {
  const value = place.read().isReturn ? left.get(key) : undefined;
  return isItems(value) ? value : undefined;
}

/** Reads a list page by page. Under another key, and after an error, nothing of the rows before is shown. */
export function usePages<Item, First extends Page<Item> = Page<Item>>(
  key: string,
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<First>,
): Pages<Item, First> {
  // only this hook keeps values, each under the key of its read
  const isItems = (value: unknown): value is PagesState<Item, First> => value !== undefined;
  const [state, set] = useState<PagesState<Item, First>>(() => keptOf(key, isItems) ?? { key, isLoading: true });
  const [request, ask] = useState<{ readonly cursor?: string | undefined; readonly round: number }>({ round: 0 });
  const reader = useRef(read);
  reader.current = read;
  const lastKey = useRef<string | undefined>(undefined);
  useEffect(() => {
    const isNew = lastKey.current !== key;
    lastKey.current = key;
    const kept = isNew ? keptOf(key, isItems) : undefined;
    if (kept !== undefined) {
      set(kept);
      return undefined;
    }
    const end = new AbortController();
    const cursor = isNew ? undefined : request.cursor;
    // what is read again stays until then, and with it the place of the focus
    set((before) => (before.key === key && before.problem === undefined ? { ...before, isLoading: true } : { key, isLoading: true }));
    void (async () => {
      try {
        const page = await reader.current(cursor, end.signal);
        if (end.signal.aborted) return;
        set((before) => {
          const now = {
            key,
            items: [...(cursor === undefined ? [] : (before.items ?? [])), ...page.items],
            first: cursor === undefined ? page : before.first,
            atMs: cursor === undefined ? Date.now() : before.atMs,
            next: page.next,
            isLoading: false,
          };
          keep(key, now);
          return now;
        });
      } catch (error) {
        if (!end.signal.aborted) set({ key, problem: problemFrom(error), isLoading: false });
      }
    })();
    return () => end.abort();
  }, [key, request]);
  const back = useObserved(returned);
  const hasFailed = useRef(false);
  hasFailed.current = state.problem !== undefined;
  useEffect(() => {
    if (hasFailed.current) ask(({ round }) => ({ round: round + 1 }));
  }, [back]);
  const shown: PagesState<Item, First> = state.key === key ? state : { key, isLoading: true };
  const { next } = shown;
  return {
    items: shown.items,
    first: shown.first,
    atMs: shown.atMs,
    problem: shown.problem,
    isLoading: shown.isLoading,
    more: next === undefined ? undefined : () => ask(({ round }) => ({ cursor: next, round: round + 1 })),
    reload: () => {
      left.delete(key);
      ask(({ round }) => ({ round: round + 1 }));
    },
  };
}
