/**
 * The messages that this process has put back into their queue because they could not be served. Until each is settled, the index
 * lacks its change, even if what failed works again. Their number is bounded by what may be in flight.
 */
import type { Fault } from '../base/fault.ts';
import { SETTLED_MS, type Hidden } from '../records/process-record.ts';
import type { Clock } from '../process/clock.ts';

export interface HiddenMessages {
  /** Notes that the message, which is about these buckets, is hidden for `delayS`. */
  hidden(messageId: string, buckets: readonly string[], how: { readonly fault: Fault; readonly delayS: number }): void;
  /** Forgets the message, which is no longer hidden for a fault. */
  settled(messageId: string): void;
  /** Summarises, for each bucket, its hidden messages. */
  byBucket(): readonly Hidden[];
}

interface HiddenOfBucket {
  readonly code: string;
  readonly sinceMs: number;
  /** When each message is received again, by the monotonic clock. */
  readonly untilMs: Map<string, number>;
}

export function createHiddenMessages(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): HiddenMessages {
  const byBucket = new Map<string, HiddenOfBucket>();

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
    byBucket() {
      const nowMs = clock.monotonicMs();
      return [...byBucket].flatMap(([bucket, { code, sinceMs, untilMs }]) => {
        let lastMs = 0;
        for (const [messageId, atMs] of untilMs) {
          // by now another process has settled it
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
