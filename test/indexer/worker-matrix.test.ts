/**
 * The fault matrix of several workers on a virtual clock: each fault beside exact and inexact events that it does not concern,
 * with one worker, with three whose circuits differ, and with a restart of all workers every five minutes. Each fault that
 * is unlike the others, in one of these forms; `npm run test:long` plays each in each.
 */
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { portFaults, tags, type MatrixFault, type Tag } from '../support/worlds/port-faults.ts';
import { runMatrixRow, type MatrixForm, type MatrixResult } from '../support/worlds/worker-matrix.ts';

const MINUTE_MS = 60_000;
/** What an event may take that the fault does not concern, of 99 in a hundred. */
const SOON_S = 5;
/** A message is hidden for 200 s at most, for the last time a minute after the recovery, and then waits for its settle. */
const HEALED_S = 360;
/** More would mean that a fault costs a message its receives. */
const RECEIVES_MAX = 7;
/**
 * Half of what the queue permits: for what cannot be served while others of its bucket are, and while the whole store fails and
 * each restart costs a receive for what a worker had in hand.
 */
const RECEIVES_ALONE_MAX = 10;

const three = { workers: 3, faultMs: 13 * MINUTE_MS, seenBy: 'all', laterMs: 0, everyMs: 2_000 } as const;

const matrixForms: readonly MatrixForm[] = [
  { ...three, name: 'with one worker', workers: 1 },
  { ...three, name: 'with three workers, of which one has the fault', seenBy: 'the first alone' },
  { ...three, name: 'with three workers that have it one after another', laterMs: 2 * MINUTE_MS },
  {
    ...three,
    name: 'with three workers that are restarted every five minutes',
    // longer than until the first messages are handed over
    faultMs: (isLong ? 60 : 25) * MINUTE_MS,
    everyMs: 8_000,
    restartsEveryMs: 5 * MINUTE_MS,
  },
];

/** Plays the row, and expects that what is not concerned is indexed soon, and in the end all is. */
async function expectMatrixRow(fault: MatrixFault, form: MatrixForm): Promise<void> {
  const result = await runMatrixRow(fault, form);
  const { wrongKeys, unfinished, healS, letters } = result;
  expect({ late: late(fault, form, result), wrongKeys, unfinished }).toEqual({ late: [], wrongKeys: [], unfinished: '' });
  expect(healS).toBeLessThanOrEqual(HEALED_S);
  expect(tags.filter((tag) => result.receivesMax[tag] > receivesMax(fault, form, tag))).toEqual([]);
  const ofHealthy = tags.filter((tag) => !fault.concerns.includes(tag)).reduce((sum, tag) => sum + letters[tag], 0);
  expect(ofHealthy).toBe(0);
  expect(tags.reduce((sum, tag) => sum + letters[tag], 0)).toBeLessThanOrEqual((fault.lettersMax ?? 0) * form.workers);
}

function receivesMax({ concerns, alone }: MatrixFault, { restartsEveryMs }: MatrixForm, tag: Tag): number {
  const isHeldForAll = concerns.length === tags.length && restartsEveryMs !== undefined;
  return tag === alone || isHeldForAll ? RECEIVES_ALONE_MAX : RECEIVES_MAX;
}

/** The kinds of events that took too long: what the fault does not concern at any time, and all from five minutes after it on. */
function late({ concerns, stopsReceiving }: MatrixFault, { seenBy }: MatrixForm, { lags, recovered }: MatrixResult): readonly string[] {
  const isServedByOthers = stopsReceiving === true && seenBy === 'the first alone';
  return tags.flatMap((tag) => {
    const during = concerns.includes(tag) && !isServedByOthers ? [] : [lags[tag]];
    const isLate = [...during, recovered[tag]].some(({ sent, indexed, p99S }) => indexed < sent || p99S >= SOON_S);
    return isLate ? [`${tag}: ${JSON.stringify({ during: lags[tag], recovered: recovered[tag] })}`] : [];
  });
}

const apart = portFaults.filter(({ isVariant }) => isVariant !== true);
/** Each plays in one form: neighbours in the list, which concern the same, in different ones, and the many buckets with one worker, where they cost least. */
const rows = matrixForms.map((form, place) => ({
  ...form,
  faults: isLong ? portFaults : apart.filter((_, index) => (index + 2) % matrixForms.length === place),
}));

describe.each(rows)('$name', ({ faults, ...form }) => {
  it.each(faults)('what is not concerned is indexed soon, and in the end all is: $name', (fault) => expectMatrixRow(fault, form));
});
