/**
 * A turn's progress: its cursor, counts and examples. The cursor advances slice by slice in key order. Writes count at once, even if their
 * slice is never committed, because the next comparison finds these keys equal.
 */
import { detached } from '../ordering/detached.ts';
import { compareKeys } from '../base/key-order.ts';
import {
  addCounts,
  addExamples,
  EXAMPLES_MAX,
  noCounts,
  type DifferenceExample,
  type DifferenceExamples,
  type ExampleKind,
  type ReconcileCounts,
} from '../records/comparison.ts';
import type { TurnProgress } from './job.rules.ts';
import type { ListedObject } from '../aws/storage.ts';
import type { Ending, SliceWork } from './settle-slice.ts';

/** What one slice compared. */
export interface SliceSides {
  readonly listed: readonly ListedObject[];
  readonly scanned: readonly { readonly key: string }[];
  /** Both sides are compared up to and including this key; undefined if nothing was compared. */
  readonly through: string | undefined;
}

export interface ProgressKeeper extends Pick<SliceWork, 'headRequested' | 'written'> {
  readonly listRequested: (count: number) => void;
  /** Counts a slice that has ended and advances the cursor behind it. Slices are committed in key order. */
  commit(slice: SliceSides, endings: readonly Ending[]): void;
  readonly sofar: () => TurnProgress;
}

/** The longest reason that is kept for a refused document. */
const REASON_MAX = 300;

/** Creates the progress of a turn that begins after the key `after`. */
export function createTurnProgress(after: string, progressed: (progress: TurnProgress) => void = () => undefined): ProgressKeeper {
  let cursor = after;
  let counts: ReconcileCounts = noCounts;
  let examples: DifferenceExamples = {};
  /** Requests count when they are sent, even if their slice is never committed. */
  let requests = { list_requests: 0, head_requests: 0 };
  /** How many written keys are in slices that are not committed yet. */
  let ahead = 0;

  function moveTo(key: string | undefined): void {
    if (key !== undefined && compareKeys(key, cursor) > 0) cursor = detached(key);
  }

  function add(endings: readonly Ending[]): void {
    counts = addCounts(counts, countsOf(endings));
    examples = addExamples(examples, examplesOf(endings, examples));
  }

  function sofar(): TurnProgress {
    return {
      cursor,
      ...(ahead > 0 && { readsFirst: true }),
      counts: addCounts(counts, requests),
      examples,
    };
  }

  return {
    headRequested: () => {
      requests = { ...requests, head_requests: requests.head_requests + 1 };
    },
    listRequested: (count) => {
      requests = { ...requests, list_requests: requests.list_requests + count };
    },
    written(endings) {
      if (endings.length === 0) return;
      ahead += endings.length;
      add(endings);
      progressed(sofar());
    },
    commit({ listed, scanned, through }, endings) {
      const unwritten = endings.filter((ending) => !isWritten(ending));
      ahead -= endings.length - unwritten.length;
      add(unwritten);
      counts = addCounts(counts, {
        listed: listed.length,
        bytes_listed: listed.reduce((sum, { state }) => sum + (state.sizeBytes ?? 0), 0),
        // deleted documents already count, because they will not be scanned again
        scanned: scanned.length - endings.filter(isPhantomDeleted).length,
      });
      moveTo(through);
      progressed(sofar());
    },
    sofar,
  };
}

/** Whether the ending counts once the index has taken its write, instead of with its slice. */
function isWritten({ effect }: Ending): boolean {
  return effect === 'document' || effect === 'tombstone';
}

function isPhantomDeleted({ effect, isListed }: Ending): boolean {
  return effect === 'tombstone' && !isListed;
}

/** What these endings count, whichever slice they belong to. A loop, because a first index has an ending for each key. */
function countsOf(endings: readonly Ending[]): Partial<ReconcileCounts> {
  let [differed, unenriched, scanned] = [0, 0, 0];
  const ends = { equal: 0, gone: 0, incomplete: 0, missing: 0, stale: 0, phantom: 0, in_flight: 0 };
  const effects = { document: 0, tombstone: 0, held: 0, refused: 0 };
  for (const ending of endings) {
    ends[ending.kind] += 1;
    if (ending.isListed && ending.kind !== 'equal') differed += 1;
    if (ending.unenriched !== undefined) unenriched += 1;
    if (ending.effect !== undefined) effects[ending.effect] += 1;
    if (isPhantomDeleted(ending)) scanned += 1;
  }
  const { equal: _, gone: __, ...differences } = ends;
  const { document: written, tombstone: tombstones, held, refused } = effects;
  return { ...differences, differed, unenriched, scanned, written, tombstones, held, refused };
}

/** The first examples in key order, as many as fit beside `earlier`. Their keys are copies, because they outlive their pages. */
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

function exampleOf({ key, fields }: Ending): DifferenceExample {
  return { key, ...(fields.length > 0 && { fields: [...fields] }) };
}
