/** The state store of large re-indexes, in virtual time: what it answers, and when, is what OpenSearch does. */
import { z } from 'zod';
import type { StateEntry, StateStore } from '../../../src/store/store.ts';
import type { StateKind } from '../../../src/records/state-kind.ts';
import type { Clock } from '../../../src/process/clock.ts';

const dueSchema = z.object({ dueAtMs: z.number().optional() });
const STATE = { getMs: 2, swapMs: 3, listMs: 3, listedEntryMs: 0.02, refreshMs: 200 };

export interface StateCounted {
  gets: number;
  /** Swaps that were stored, by the kind of their record. */
  readonly puts: Partial<Record<StateKind, number>>;
  removes: number;
  conflicts: number;
  lists: number;
  /** Searches for what is due. */
  looks: number;
  /** Entries that lists answered. */
  listedEntries: number;
}

interface Stored extends StateEntry {
  /** Its JSON: nothing is shared between the store and its callers. */
  readonly text: string;
  /** Of a job. */
  readonly dueAtMs: number | undefined;
}

/** Swaps count at once and return after the next refresh, which lists show it from; conflicts return at once. */
export function createLargeState(clock: Clock): StateStore & { readonly counted: StateCounted } {
  const counted: StateCounted = { gets: 0, puts: {}, removes: 0, conflicts: 0, lists: 0, looks: 0, listedEntries: 0 };
  const entries = new Map<string, Stored>();
  const shown = new Map<string, Stored>();
  let changes: { readonly id: string; readonly entry: Stored | undefined; readonly shownAtMs: number }[] = [];
  let versions = 0;

  /** Resolves after the refresh that shows the change. */
  function change(id: string, entry: Stored | undefined): Promise<void> {
    if (entry === undefined) entries.delete(id);
    else entries.set(id, entry);
    const shownAtMs = (Math.floor(clock.monotonicMs() / STATE.refreshMs) + 1) * STATE.refreshMs;
    changes.push({ id, entry, shownAtMs });
    return clock.sleep(shownAtMs - clock.monotonicMs());
  }

  function refresh(): void {
    const nowMs = clock.monotonicMs();
    for (const { id, entry, shownAtMs } of changes) {
      if (shownAtMs > nowMs) continue;
      if (entry === undefined) shown.delete(id);
      else shown.set(id, entry);
    }
    changes = changes.filter(({ shownAtMs }) => shownAtMs > nowMs);
  }

  async function list(...[kind, { after = '', limit }, signal]: Parameters<StateStore['list']>): Promise<readonly StateEntry[]> {
    refresh();
    const found = [...shown.values()]
      .filter((entry) => entry.kind === kind && entry.id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
    counted.lists += 1;
    counted.listedEntries += found.length;
    await clock.sleep(STATE.listMs + found.length * STATE.listedEntryMs, signal);
    return found.map(copyOf);
  }

  return {
    counted,
    async get(id, signal) {
      counted.gets += 1;
      await clock.sleep(STATE.getMs, signal);
      const entry = entries.get(id);
      return entry && copyOf(entry);
    },
    async version(id) {
      return entries.get(id)?.version;
    },
    async put({ id, kind, record, ...how }, expected) {
      await clock.sleep(STATE.swapMs);
      if ((entries.get(id)?.version ?? null) !== expected) {
        counted.conflicts += 1;
        return 'conflict';
      }
      counted.puts[kind] = (counted.puts[kind] ?? 0) + 1;
      versions += 1;
      const { dueAtMs } = kind === 'job' ? dueSchema.parse(record) : {};
      const stored = { id, kind, record, version: String(versions), text: JSON.stringify(record), dueAtMs };
      const isShown = change(id, stored);
      // a write that need not be listed yet does not wait for the refresh
      if (!('listed' in how && how.listed === 'soon')) await isShown;
      return copyOf(stored);
    },
    async remove(id, expected, _signal, listed) {
      await clock.sleep(STATE.swapMs);
      const entry = entries.get(id);
      if (entry !== undefined && entry.version !== expected) {
        counted.conflicts += 1;
        return 'conflict';
      }
      counted.removes += 1;
      const isShown = change(id, undefined);
      if (listed !== 'soon') await isShown;
      return 'removed';
    },
    list,
    async due({ nowMs, aheadMaxMs, limit }, signal) {
      refresh();
      counted.looks += 1;
      const due = [...shown.values()].filter(({ dueAtMs }) => dueAtMs !== undefined && (dueAtMs <= nowMs || dueAtMs > nowMs + aheadMaxMs));
      const found = due.slice(0, limit).map(({ id }) => id);
      await clock.sleep(STATE.listMs + found.length * STATE.listedEntryMs, signal);
      return found;
    },
    async count(kind) {
      refresh();
      return [...shown.values()].filter((entry) => entry.kind === kind).length;
    },
  };
}

function copyOf({ id, kind, version, text }: Stored): StateEntry {
  return { id, kind, version, record: JSON.parse(text) as unknown };
}
