/** The gaps under which records are acknowledged, and the reconciles that close them: what is stored is decided by the product. */
import { afterLook, dueAtMs, withReport, type DirtyMark, type MarkKind } from '../../../src/records/dirty.ts';
import { FUTURE_MS } from '../../../src/ordering/constants.ts';
import { jobMadeAt } from '../../support/fakes/gap-records.ts';
import type { SimMessage } from './history.ts';
import type { World } from './world.ts';

export interface GapWriter {
  /** Acknowledges the message under an open gap: its record is served by the reconcile that closes the gap. */
  handOver(message: SimMessage): void;
}

export interface Gaps {
  /** What one worker, whose clock is ahead by this much, knows of the gaps that it stored. */
  writerOf(skewMs: number): GapWriter;
  readonly isAnyOpen: boolean;
}

type HandedOverKind = Extract<MarkKind, 'handed-over' | 'handed-over-deletes'>;

/** How often a gap that is not due, or whose job did not close it, is considered. */
const LOOK_MS = 60_000;

/** Creates the gaps of a bucket. `reconcile` runs one, and says with which moment it ended: what changed before it is covered. */
export function createGaps(world: World, reconcile: (done: (coversBeforeMs: number) => void) => void): Gaps {
  let mark: DirtyMark | undefined;
  const { s3AheadMs } = world.history;
  let isReconciling = false;
  /** How many reconciles have begun. */
  let begun = 0;

  function sight(kind: HandedOverKind, seenAtMs: number, nowMs: number): void {
    const isNew = mark === undefined;
    mark = withReport(
      mark,
      { bucket: 'b', kind, reason: 'handed over', seenAtMs },
      { nowMs, order: begun, enrich: 'none', repaired: undefined },
    );
    if (isNew) lookLater();
  }

  function lookLater(): void {
    world.at(world.nowMs + world.random.integer(1_000, LOOK_MS), () => {
      if (mark === undefined || isReconciling) return;
      // the clock of the worker that looks is that of SQS
      const nowMs = world.nowMs - s3AheadMs;
      if (dueAtMs(mark, nowMs) > nowMs) return lookLater();
      isReconciling = true;
      begun += 1;
      reconcile((coversBeforeMs) => {
        isReconciling = false;
        const job = jobMadeAt(0, { bucket: 'b', state: 'done', coversBeforeMs, beginOrder: begun });
        const look = { named: job, latest: job, nowMs: world.nowMs - s3AheadMs, repaired: undefined };
        const after = mark && afterLook({ ...mark, jobId: job.id }, look);
        mark = after === undefined || 'closedBy' in after ? undefined : after;
        if (mark !== undefined) lookLater();
      });
    });
  }

  return {
    writerOf(skewMs) {
      const storedUpToMs = new Map<HandedOverKind, number>();
      return {
        handOver({ record, sentAtMs: sentByS3Ms }) {
          world.counts.handedOver += 1;
          const sentAtMs = sentByS3Ms - s3AheadMs;
          const kind: HandedOverKind =
            record.change.kind === 'deleted' || record.change.kind === 'marker-created' ? 'handed-over-deletes' : 'handed-over';
          const momentMs = Math.max(sentAtMs, Math.min(record.eventTimeMs ?? 0, sentAtMs + FUTURE_MS));
          const upToMs = storedUpToMs.get(kind);
          if (upToMs !== undefined && world.rules.mayHandOver(upToMs, momentMs)) return;
          const seenAtMs = world.rules.handedOverUpToMs(world.nowMs + skewMs, momentMs);
          sight(kind, seenAtMs, world.nowMs + skewMs);
          storedUpToMs.set(kind, Math.max(seenAtMs, upToMs ?? 0));
        },
      };
    },
    get isAnyOpen() {
      return mark !== undefined;
    },
  };
}
