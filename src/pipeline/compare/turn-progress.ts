/** The progress of a turn: its cursor, counts and examples, which advance slice by slice in key order. */
import { detached } from '../../domain/documents/detached.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import {
  addCounts,
  addExamples,
  EXAMPLES_MAX,
  noCounts,
  type DifferenceExample,
  type DifferenceExamples,
  type ExampleKind,
  type ReconcileCounts,
} from '../../domain/reindex/counts.ts';
import type { ListingPlace } from '../../domain/reindex/passed-pages.ts';
import type { ListedObject } from '../ports/storage.ts';
import type { EmptyPage } from './page-feeds.ts';
import type { Ending, SliceEnd, SliceWork, Tombstones, WrittenFinding } from './settle-slice.ts';

/** What one slice compared. */
export interface SliceSides {
  readonly listed: readonly ListedObject[];
  readonly scanned: readonly { readonly key: string }[];
  /** How many keys were equal on both sides in the first comparison. */
  readonly equal: number;
  /** Both sides are compared up to this key, inclusive; undefined: nothing was compared. */
  readonly through: string | undefined;
}

/** The parts of the progress that one slice uses while it is settled. */
export type SliceProgress = Pick<SliceWork, 'tombstones' | 'headRequested' | 'written'>;

export interface TurnProgress {
  readonly cursor: string;
  /** Where the listing after the cursor continues, if pages without keys were passed there. */
  readonly place: ListingPlace | undefined;
  /** Passes a page without keys, about which nothing is concluded. */
  readonly passed: (page: EmptyPage) => void;
  readonly openSlice: () => SliceProgress;
  readonly listRequested: () => void;
  /** Counts a slice that has ended and advances the cursor behind it. Slices are committed in key order. */
  commit(slice: SliceSides, opened: SliceProgress, end: Extract<SliceEnd, { readonly endings: unknown }>): void;
  /** What is counted so far. What was written of slices that were not committed is counted as well ({@link countsOfRepeated}). */
  readonly counts: () => ReconcileCounts;
  /** `heldBack`: the cursor before the first slice of which the brake held deletions back, and what counts if the turn is repeated from there. */
  readonly result: () => {
    readonly cursor: string;
    readonly place?: ListingPlace;
    readonly readsFirst?: boolean;
    readonly counts: ReconcileCounts;
    readonly examples: DifferenceExamples;
    readonly heldBack?: { readonly cursor: string; readonly counts: ReconcileCounts };
  };
}

/** The longest reason of a refused document that is kept: a hundred of them fit into a state record. */
const REASON_MAX = 300;

/** The most tombstones of one reservation, so that a crash loses no more of the brake's allowance. */
const RESERVE_MAX = 500;

/** The job's brake, as TurnControls describe it. */
interface Brake {
  readonly reserve: (count: number) => Promise<number>;
  readonly holdsBack?: () => boolean;
}

/** The part of the turn's controls that its progress uses. */
interface Controls extends Brake {
  readonly wrote?: (counts: ReconcileCounts) => void;
}

/** Creates the progress of a turn that begins after the key `after`, or behind pages without keys that follow it. */
export function createTurnProgress(begin: Pick<EmptyPage, 'after'> & Partial<EmptyPage>, controls: Controls): TurnProgress {
  let cursor = begin.after;
  let passed: Partial<EmptyPage> = begin;
  let counts: ReconcileCounts = noCounts;
  let examples: DifferenceExamples = {};
  /** Requests are counted when they are sent, even if their slice is never committed. */
  let requests = { listRequests: 0, headRequests: 0 };
  /** What the slices have written that are not committed. A turn repeats a slice at most twice, and settles few at the same time. */
  const uncommitted = new Map<SliceProgress, readonly WrittenFinding[]>();
  const tombstones = createTombstones(controls);
  let heldBack: { readonly cursor: string; readonly counts: ReconcileCounts } | undefined;

  function moveTo(key: string | undefined): void {
    if (key !== undefined && compareKeys(key, cursor) > 0) cursor = detached(key);
  }

  /** What was passed after another key counts once the cursor is there. */
  function place(): ListingPlace | undefined {
    return passed.after === cursor ? passed.place : undefined;
  }

  return {
    get cursor() {
      return cursor;
    },
    get place() {
      return place();
    },
    passed(page) {
      passed = { after: detached(page.after), place: page.place };
    },
    openSlice() {
      const opened: SliceProgress = {
        tombstones,
        headRequested: () => {
          requests = { ...requests, headRequests: requests.headRequests + 1 };
        },
        written(findings) {
          if (findings.length === 0) return;
          uncommitted.set(opened, [...(uncommitted.get(opened) ?? []), ...findings]);
          controls.wrote?.(countsOfRepeated(findings));
        },
      };
      return opened;
    },
    listRequested: () => {
      requests = { ...requests, listRequests: requests.listRequests + 1 };
    },
    commit(slice, opened, end) {
      const written = uncommitted.get(opened) ?? [];
      const left = end.kind === 'braked' ? writtenFrom(end.beforeKey, written) : [];
      uncommitted.delete(opened);
      if (end.endings.some(({ effect }) => effect === 'held')) heldBack ??= { cursor, counts };
      // what is left is counted by result(), as all that is not committed
      const committed = written.filter((each) => !left.includes(each));
      if (heldBack !== undefined) heldBack = { ...heldBack, counts: addCounts(heldBack.counts, countsOfRepeated(committed)) };
      if (left.length > 0) uncommitted.set(opened, left);
      const done = end.kind === 'braked' ? sidesBefore(slice, end.beforeKey, end.endings) : slice;
      counts = addCounts(counts, countsOf(done, end.endings));
      examples = addExamples(examples, examplesOf(end.endings, examples));
      moveTo(done.through);
    },
    counts: () => withUncommitted(counts),
    result() {
      const endings = [...uncommitted.values()].flat().map(({ ending }) => ending);
      const at = place();
      return {
        cursor,
        ...(at !== undefined && { place: at }),
        ...(uncommitted.size > 0 && { readsFirst: true }),
        counts: withUncommitted(counts),
        examples: addExamples(examples, examplesOf(endings)),
        ...(heldBack !== undefined && { heldBack: { cursor: heldBack.cursor, counts: withUncommitted(heldBack.counts) } }),
      };
    },
  };

  function withUncommitted(committed: ReconcileCounts): ReconcileCounts {
    return addCounts(addCounts(committed, requests), countsOfRepeated([...uncommitted.values()].flat()));
  }
}

/** What was written at or after the key at which the brake cut the slice. */
function writtenFrom(beforeKey: string, written: readonly WrittenFinding[]): readonly WrittenFinding[] {
  return written.filter(({ finding }) => compareKeys(finding.key, beforeKey) >= 0);
}

/**
 * What was written of slices that will be compared again: what it was is counted now, since the next comparison finds these
 * keys equal. It counts them as listed and equal, so each listed one is taken from `equal` in advance.
 */
function countsOfRepeated(written: readonly WrittenFinding[]): ReconcileCounts {
  const counts = { ...noCounts };
  for (const { finding, ending } of written) {
    if (ending.kind !== 'gone') counts[ending.kind] += 1;
    if (ending.unenriched !== undefined) counts.unenriched += 1;
    if (ending.effect === 'document') counts.written += 1;
    if (ending.effect === 'tombstone') counts.tombstones += 1;
    if (finding.state !== undefined) counts.equal -= 1;
    // a tombstone is not scanned again
    else if (ending.effect === 'tombstone') counts.scanned += 1;
  }
  return counts;
}

/** Keeps tombstones that were granted and not used for the next slice, since a slice cannot return them to the job. */
function createTombstones({ reserve, holdsBack = () => false }: Brake): Tombstones {
  let spare = 0;
  return {
    async reserve(count) {
      const fromSpare = Math.min(spare, count);
      spare -= fromSpare;
      let granted = fromSpare;
      while (granted < count) {
        const wanted = Math.min(RESERVE_MAX, count - granted);
        const more = await reserve(wanted);
        granted += more;
        if (more < wanted) break;
      }
      return granted;
    },
    giveBack(count) {
      spare += count;
    },
    holdsBack,
  };
}

/** The part of a slice before the first key that the brake holds back. */
function sidesBefore(slice: SliceSides, beforeKey: string, endings: readonly Ending[]): SliceSides {
  const isBefore = ({ key }: { readonly key: string }): boolean => compareKeys(key, beforeKey) < 0;
  const listed = slice.listed.filter(isBefore);
  const scanned = slice.scanned.filter(isBefore);
  const last = [listed.at(-1)?.key, scanned.at(-1)?.key].filter((key) => key !== undefined).toSorted(compareKeys);
  const keys = new Set(listed.map(({ key }) => key));
  // each listed key was equal in the first comparison, or has an ending
  const equal = listed.length - endings.filter(({ key }) => keys.has(key)).length;
  return { listed, scanned, equal, through: last.at(-1) };
}

function countsOf({ listed, scanned, equal }: SliceSides, endings: readonly Ending[]): Partial<ReconcileCounts> {
  let unenriched = 0;
  const ends = { equal: 0, gone: 0, incomplete: 0, missing: 0, stale: 0, phantom: 0, inFlight: 0 };
  const effects = { document: 0, tombstone: 0, held: 0, refused: 0 };
  for (const { kind, effect, unenriched: lacking } of endings) {
    ends[kind] += 1;
    if (lacking !== undefined) unenriched += 1;
    if (effect !== undefined) effects[effect] += 1;
  }
  const { gone: _, ...differences } = ends;
  return {
    ...differences,
    listed: listed.length,
    scanned: scanned.length,
    equal: equal + ends.equal,
    unenriched,
    written: effects.document,
    tombstones: effects.tombstone,
    held: effects.held,
    refused: effects.refused,
    bytesListed: listed.reduce((sum, { state }) => sum + (state.sizeBytes ?? 0), 0),
  };
}

/** The first examples in key order, as many as there is room for beside `earlier`. Their keys are copies, because they are kept longer than their pages. */
function examplesOf(endings: readonly Ending[], earlier: DifferenceExamples = {}): DifferenceExamples {
  const examples: { -readonly [Kind in keyof DifferenceExamples]: DifferenceExample[] } = {};
  const hasRoom = (kind: ExampleKind): boolean => (earlier[kind]?.length ?? 0) + (examples[kind]?.length ?? 0) < EXAMPLES_MAX;
  const add = (kind: ExampleKind, { key, ...example }: DifferenceExample): void => {
    if (hasRoom(kind)) (examples[kind] ??= []).push({ key: detached(key), ...example });
  };
  const isExample = ({ kind, effect, unenriched }: Ending): boolean =>
    (kind !== 'equal' && kind !== 'gone' && hasRoom(kind)) ||
    (unenriched !== undefined && hasRoom('unenriched')) ||
    (effect === 'refused' && hasRoom('refused'));
  for (const ending of endings.filter(isExample).toSorted((a, b) => compareKeys(a.key, b.key))) {
    const { kind, key, effect, reason, unenriched } = ending;
    if (kind !== 'equal' && kind !== 'gone') add(kind, exampleOf(ending));
    if (unenriched !== undefined) add('unenriched', { key, fields: [...unenriched] });
    if (effect === 'refused') add('refused', { key, ...(reason !== undefined && { reason: reason.slice(0, REASON_MAX) }) });
  }
  return examples;
}

function exampleOf({ key, fields, notBeforeMs }: Ending): DifferenceExample {
  return { key, ...(fields.length > 0 && { fields: [...fields] }), ...(notBeforeMs !== undefined && { notBeforeMs }) };
}
