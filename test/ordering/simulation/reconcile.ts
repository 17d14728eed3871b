/**
 * A reconcile of the key (rules 6 and 8):
 *
 *   time read ─► floor stored ─► Q later: scan and listing ─► equal │ decided on what is stored now ─► listing write │ HEAD, write
 *                                     ▲                        │           ▲                                 │ refused: at most 5 rounds
 *                                     │                        │           └─────────────────────────────────┤
 *                                     └── an outage,           └── missing: listing write, unread ───────────┘
 *                                         an expired page
 */
import type { PresentState } from '../../../src/ordering/document.ts';
import { RECONCILE_WAIT_MS } from '../../../src/ordering/constants.ts';
import { coversBefore } from '../../../src/records/job.ts';
import { clockOfListing, decideListed, decideSeen, type StoredDocument } from '../../../src/repair/decide.rules.ts';
import type { Content } from './bucket.ts';
import type { Answer, Stored, World } from './world.ts';

const ROUNDS_MAX = 5;

/** Runs a reconcile from now on; `done` gets the moment before which all changes are covered. */
export type Reconcile = (done: (coversBeforeMs: number) => void) => void;

/** `unsettled` is called when a provisional document was written, which nothing but a sweep settles. */
export function createReconcile(world: World, unsettled: () => void): Reconcile {
  const { rules, random } = world;

  return function reconcile(done) {
    world.whenUp(['s3'], () => {
      // by the clock of the worker that runs it, which is that of SQS
      const sentMs = world.nowMs - world.history.s3AheadMs;
      const { observedAtMs, answeredMs } = world.ask(world.nowMs);
      world.at(answeredMs + random.pick([0, 50, 4_000]), () => {
        if (world.outEndMs('cluster') !== undefined) return world.whenUp(['cluster'], () => reconcile(done));
        world.storeFloor(observedAtMs);
        world.at(world.nowMs + RECONCILE_WAIT_MS + random.integer(0, 5_000), () =>
          compare(() => end(() => done(coversBefore({ observedAtMs, sentMs })))),
        );
      });
    });
  };

  /** The job goes on with other keys, for a moment or for an hour. */
  function end(done: () => void): void {
    world.at(world.nowMs + random.pick([0, 60_000, 600_000, 3_600_000]), done);
  }

  /** Scan and listing are read at different moments, either first. */
  function compare(done: () => void): void {
    world.whenUp(['s3', 'index'], () => {
      const listedMs = world.nowMs + random.pick([0, 50, 2_000, 60_000]);
      const scannedMs = world.nowMs + random.pick([0, 50, 2_000, 60_000]);
      const listed = world.ask(listedMs);
      let scanned: Stored | undefined;
      world.at(scannedMs, () => {
        scanned = world.stored;
      });
      world.at(Math.max(listed.answeredMs, scannedMs), () => {
        if (world.outEndMs('s3') !== undefined || world.outEndMs('index') !== undefined) return compare(done);
        if ((scanned?.content ?? null) === listed.content) return done();
        // what the scan does not show is written unread, unless the bucket is enriched or its page is compared again
        if ((scanned?.content ?? null) === null && random.chance(0.75)) return writeUnread(listed, done);
        settle(listed, 1, done);
      });
    });
  }

  function writeUnread(listed: Answer, done: () => void): void {
    write(listed.answeredMs, {
      next: { clock: clockOfListing(listed.observedAtMs), content: listed.content, settled: true, stateAtMs: listed.observedAtMs },
      equalClock: 'refuse',
      again: () => compare(done),
      refused: () => settle(listed, 2, done),
      written: done,
    });
  }

  /** What the product decides on what is stored now; what is refused is decided again. */
  function settle(listed: Answer, round: number, done: () => void): void {
    if (round > ROUNDS_MAX) return done();
    const read = world.stored;
    const clock = clockOfListing(listed.observedAtMs);
    switch (decideListed(presentOf(listed.content), documentOf(read), clock).kind) {
      case 'gone':
      case 'equal':
      case 'incomplete':
        return done();
      case 'missing':
      case 'stale':
        return write(listed.answeredMs, {
          next: { clock, content: listed.content, settled: true, stateAtMs: listed.observedAtMs },
          equalClock: 'accept',
          again: () => compare(done),
          refused: () => settle(listed, round + 1, done),
          written: done,
        });
      case 'phantom':
      case 'in_flight':
        return confirm({ listed, read, round }, done);
    }
  }

  function confirm(
    { listed, read, round }: { readonly listed: Answer; readonly read: Stored | undefined; readonly round: number },
    done: () => void,
  ): void {
    world.at(world.nowMs + random.integer(0, 3_000), () => {
      if (world.outEndMs('s3') !== undefined) return compare(done);
      const { content, observedAtMs, answeredMs } = world.ask(world.nowMs);
      const decision = decideSeen(presentOf(content) ?? { present: false }, documentOf(read), observedAtMs);
      if (decision.kind === 'agrees') return world.at(answeredMs, done);
      const { clock, settled, equalClock } = decision.plan;
      world.at(answeredMs, () =>
        write(answeredMs, {
          next: { clock, content, settled, stateAtMs: observedAtMs },
          equalClock,
          again: () => compare(done),
          refused: () => settle(listed, round + 1, done),
          written: () => {
            if (!settled) unsettled();
            done();
          },
        }),
      );
    });
  }

  /** Writes at any moment of the answer's life; what is too old by now, or meets an outage, is asked again. */
  function write(answeredMs: number, { next, equalClock, again, refused, written }: PlannedWrite): void {
    const expiresAtMs = answeredMs + rules.answerLifeMs;
    if (world.nowMs > expiresAtMs) return again();
    world.at(random.integer(world.nowMs, expiresAtMs), function now() {
      world.send({
        next,
        equalClock,
        worker: undefined,
        answered: (answer) => (answer === 'written' ? written() : refused()),
        failed: (outEndMs) => (rules.waitsWithoutAnswer ? again() : world.at(outEndMs, now)),
      });
    });
  }
}

interface PlannedWrite {
  readonly next: Stored;
  readonly equalClock: 'accept' | 'refuse';
  readonly again: () => void;
  readonly refused: () => void;
  readonly written: () => void;
}

/** What the product decides by, of the one thing that differs here. */
function presentOf(content: Content): PresentState | undefined {
  return content === null ? undefined : { present: true, etag: content };
}

function documentOf(held: Stored | undefined): StoredDocument | undefined {
  if (held === undefined) return undefined;
  return { clock: held.clock, deleted: held.content === null, ...(held.content !== null && { etag: held.content }) };
}
