/**
 * Plays a history against the product's decision functions: workers, reconciles, sweeps, purges and readings of versioning,
 * each at its own pace. The index of the one key is what is left when the last message was settled and the last gap closed.
 */
import type { Content } from './bucket.ts';
import { createGaps } from './gaps.ts';
import { drawHistory, START_MS, type History, type Mix } from './history.ts';
import { createRandom, type Random } from '../../support/random/seeded.ts';
import { createReconcile } from './reconcile.ts';
import { productRules, type Rules } from './rules.ts';
import { createWorker, type Worker } from './worker.ts';
import { createWorld, valueAt, type Counts, type World } from './world.ts';

export interface Result {
  readonly index: Content;
  readonly bucket: Content;
  /** What the index held before the sweep of unsettled documents. Only what may have lost its message needs the sweep to be right. */
  readonly unswept: Content;
  readonly settled: boolean;
  readonly isGapOpen: boolean;
  readonly counts: Readonly<Counts>;
}

const SECOND = 1_000;
/** The sweep of unsettled documents leaves alone what is younger, and comes every five minutes. */
const SWEEP_AGE_MS = 600 * SECOND;
const SWEEP_EVERY_MS = 300 * SECOND;
/** More than pass during the longest outage. */
const SWEEPS_MAX = 200;
/** Workers' clocks, compared with that of SQS. */
const SKEWS = [0, 0, -400, 5 * SECOND, -90 * SECOND, -900 * SECOND, 300 * SECOND];

/** Draws the history of a seed, plays it to its end, and says what index and bucket hold then. */
export function play(seed: number, mix: Mix, rules: Rules = productRules): Result {
  const history = drawHistory(seed, mix);
  const random = createRandom(seed ^ 0x5bd1e995);
  const world = createWorld(history, random, rules);
  /** Whether a provisional document may be left without a message that settles it. */
  let isOrphanPossible = mix.handsOver;
  const reconcile = createReconcile(world, () => {
    isOrphanPossible = true;
  });
  const gaps = createGaps(world, reconcile);
  const workers = Array.from({ length: random.integer(1, 3) }, (_, id) =>
    createWorker(world, {
      id,
      skewMs: random.pick(SKEWS) - history.s3AheadMs,
      gaps,
      redeliver: (message) => random.pick(workers).receive(message),
    }),
  );
  for (const message of history.messages)
    for (const atMs of message.receivedAtMs) world.at(atMs, () => random.pick(workers).receive(message));
  for (const atMs of reconcileTimes(history, random)) world.at(atMs, () => reconcile(() => undefined));
  if (mix.versioning === 'changes') readVersioning(world);
  world.runAll();
  const contentNow = (): Content => world.stored?.content ?? null;
  const unswept = contentNow();
  sweepUnsettled(world, () => random.pick(workers));
  return {
    index: contentNow(),
    unswept: isOrphanPossible ? contentNow() : unswept,
    bucket: valueAt(history.changes, Infinity),
    settled: world.stored?.settled ?? true,
    isGapOpen: gaps.isAnyOpen,
    counts: world.counts,
  };
}

/**
 * Sweeps until the document is settled, as the product does all the time. A write that joined hints share is unsettled if one
 * of them is; when that one's second observation is refused, because another's clock was higher, only a sweep settles the document.
 */
function sweepUnsettled(world: World, worker: () => Worker): void {
  for (let sweeps = 0; world.stored?.settled === false && sweeps < SWEEPS_MAX; sweeps += 1) {
    const agedMs = Math.max(world.nowMs, world.stored.clock / 1_000 + SWEEP_AGE_MS);
    world.at(agedMs + world.random.integer(0, SWEEP_EVERY_MS), () => worker().observeAgain());
    world.runAll();
  }
}

/** Whether a history ended with an index that is not the bucket's, with an unsettled document, or with an open gap. */
export function isWrong({ index, unswept, bucket, settled, isGapOpen }: Result): boolean {
  return index !== bucket || unswept !== bucket || !settled || isGapOpen;
}

/** A lossy history is reconciled once all is over; any history may be reconciled in its midst. */
function reconcileTimes({ mix, endMs }: History, random: Random): readonly number[] {
  const midst = random.chance(0.5) ? [START_MS + random.integer(0, endMs - START_MS + 120 * SECOND)] : [];
  return mix.losses === 'lossy' ? [...midst, endMs + random.integer(1, 600 * SECOND)] : midst;
}

/** Versioning is read now and then, and often around a delete. Each reading is an answer of S3's with its D. */
function readVersioning(world: World): void {
  const { history, random } = world;
  const latestMs = history.endMs + 60 * SECOND;
  for (let reads = random.integer(0, 3); reads > 0; reads -= 1)
    world.at(random.integer(START_MS - 60 * SECOND, latestMs), () => read(world));
  for (const { atMs } of history.changes) if (random.chance(0.6)) world.at(atMs + random.integer(0, 12 * SECOND), () => read(world));
}

function read(world: World): void {
  const { history, random } = world;
  if (world.outEndMs('s3') !== undefined || world.outEndMs('cluster') !== undefined) return;
  const durationMs = random.pick([5, 50, 800, 9_000]);
  const status = valueAt(history.versioning, world.nowMs + random.integer(0, durationMs));
  const dateMs = Math.floor((world.nowMs + durationMs) / SECOND) * SECOND;
  world.at(world.nowMs + durationMs + random.integer(0, 3 * SECOND), () => {
    if (world.outEndMs('cluster') === undefined) world.storeVersioning({ status, observedAtMs: dateMs - durationMs });
  });
}
