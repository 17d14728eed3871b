/** The gaps under which records are acknowledged, and the reconciles that close them: what is stored is decided by the product. */
import { gapAfterLook, gapDueAtMs } from '../../../../src/domain/gaps/closing.ts';
import { withReport, type GapKind, type GapRecord } from '../../../../src/domain/gaps/gap.ts';
import { FUTURE_MS } from '../../../../src/domain/ordering/constants.ts';
import { jobMadeAt } from '../../../support/fakes/gap-records.ts';
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

type HandedOverKind = Extract<GapKind, 'loss' | 'bulk-delete'>;

/** How often a gap that is not due, or whose job did not close it, is considered. */
const LOOK_MS = 60_000;

/** Creates the gaps of a bucket. `reconcile` runs one, and says with which moment it ended: what changed before it is covered. */
export function createGaps(world: World, reconcile: (done: (coversBeforeMs: number) => void) => void): Gaps {
  const stored = new Map<HandedOverKind, GapRecord>();
  const { s3AheadMs } = world.history;
  let isReconciling = false;
  /** How many reconciles have begun. */
  let begun = 0;

  function sight(kind: HandedOverKind, seenAtMs: number, toldAtMs: number): void {
    const isNew = stored.get(kind)?.state !== 'open' && stored.get(kind)?.state !== 'closing';
    stored.set(
      kind,
      withReport(
        stored.get(kind),
        { bucket: 'b', kind, reason: 'handed over', seenAtMs },
        { count: 1, toldAtMs, afterBeginOrder: begun, enrich: 'none' },
      ),
    );
    if (isNew) lookLater();
  }

  function lookLater(): void {
    world.at(world.nowMs + world.random.int(1_000, LOOK_MS), () => {
      const open = [...stored.values()].filter(({ state }) => state !== 'closed');
      if (open.length === 0 || isReconciling) return;
      // the clock of the worker that looks is that of SQS
      if (!open.some((gap) => gapDueAtMs(gap) <= world.nowMs - s3AheadMs)) return lookLater();
      isReconciling = true;
      begun += 1;
      reconcile((coversBeforeMs) => {
        isReconciling = false;
        const job = jobMadeAt(0, { bucket: 'b', state: 'done', coversBeforeMs, beginOrder: begun });
        for (const [kind, gap] of stored) stored.set(kind, gap.state === 'closed' ? gap : gapAfterLook(gap, job, world.nowMs - s3AheadMs));
        if ([...stored.values()].some(({ state }) => state !== 'closed')) lookLater();
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
          const kind: HandedOverKind = record.change.kind === 'deleted' || record.change.kind === 'marker-created' ? 'bulk-delete' : 'loss';
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
      return [...stored.values()].some(({ state }) => state !== 'closed');
    },
  };
}
