/**
 * The messages that this process has put back into their queue because they could not be served: until each is settled, the index
 * lacks what it says, also when what failed works again. There are as many as may be in flight.
 */
import type { Fault } from '../base/fault.ts';
import type { Hidden } from '../records/process-record.ts';
import type { Clock } from '../process/clock.ts';

/** What is visible again is received at once, by this process or by another one. */
const SETTLED_MS = 30_000;

export interface HiddenMessages {
  /** The message is hidden for so long, and is about these buckets. */
  hidden(messageId: string, buckets: readonly string[], how: { readonly fault: Fault; readonly delayS: number }): void;
  /** The message was deleted. */
  settled(messageId: string): void;
  /** What is hidden of each bucket. */
  all(): readonly Hidden[];
}

interface OfBucket {
  readonly code: string;
  readonly sinceMs: number;
  /** When each message is received again, by the monotonic clock. */
  readonly untilMs: Map<string, number>;
}

export function createHiddenMessages(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): HiddenMessages {
  const byBucket = new Map<string, OfBucket>();

  function settled(messageId: string): void {
    for (const [bucket, { untilMs }] of byBucket) if (untilMs.delete(messageId) && untilMs.size === 0) byBucket.delete(bucket);
  }

  return {
    hidden(messageId, buckets, { fault: { code }, delayS }) {
      const atMs = clock.monotonicMs() + delayS * 1_000;
      for (const bucket of buckets) {
        const known = byBucket.get(bucket) ?? { code, sinceMs: clock.nowMs(), untilMs: new Map<string, number>() };
        known.untilMs.set(messageId, atMs);
        byBucket.set(bucket, known);
      }
    },
    settled(messageId) {
      if (byBucket.size > 0) settled(messageId);
    },
    all() {
      const nowMs = clock.monotonicMs();
      return [...byBucket].flatMap(([bucket, { code, sinceMs, untilMs }]) => {
        let lastMs = 0;
        for (const [messageId, atMs] of untilMs) {
          // another process has settled it
          if (nowMs >= atMs + SETTLED_MS) untilMs.delete(messageId);
          else lastMs = Math.max(lastMs, atMs);
        }
        if (untilMs.size > 0) return [{ bucket, code, sinceMs, leftMs: Math.max(0, lastMs - nowMs) }];
        byBucket.delete(bucket);
        return [];
      });
    },
  };
}
