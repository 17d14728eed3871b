/**
 * Audits what sweeps delete from the index: one record for each bulk request, after it, with the keys whose live documents it
 * replaced by tombstones. Observations of tombstones and tombstones of live events are not counted.
 */
import { randomUUID } from 'node:crypto';
import type { Actor } from '../base/actor.ts';
import { newAuditRecord, storeAuditRecord } from '../store/stored.ts';
import type { Observe } from '../observing/observer.ts';
import type { IndexWrite, ObjectIndex, WithPorts } from '../store/store.ts';

/** A bulk request has 1,000 actions by default. With the longest keys these are 1 MiB; of the others only the number is recorded. */
const KEYS_MAX = 1_000;

interface SweepDeletesDependencies extends WithPorts<'audit' | 'clock' | 'telemetry'> {
  readonly objects: ObjectIndex;
  /** This process. */
  readonly actor: Actor;
}

interface SweepDeletes {
  /** The index, for the writer of the sweeps. A record that cannot be stored is logged, and the writes are answered all the same. */
  readonly objects: ObjectIndex;
  /** Wraps the observer of the sweeps. */
  readonly watching: (observe: Observe) => Observe;
}

/** Creates both. The observer must write through this index. */
export function createSweepDeletes({ objects, audit, clock, telemetry, actor }: SweepDeletesDependencies): SweepDeletes {
  /** The keys that sweeps observe now because of a live document, with the number of observations. There are at most as many as observations that run at the same time. */
  const observing = new Map<string, number>();

  async function record(deleted: readonly IndexWrite[]): Promise<void> {
    const keys = deleted.slice(0, KEYS_MAX).map(({ document: { bucket, key } }) => ({ bucket, key }));
    const facts = { event: 'SweepDelete', outcome: 'done', actor, requestId: randomUUID(), atMs: clock.nowMs() } as const;
    await storeAuditRecord({ audit, telemetry }, newAuditRecord({ ...facts, parameters: { deleted: deleted.length, keys } }));
  }

  return {
    objects: {
      ...objects,
      async write(writes, signal) {
        const answers = await objects.write(writes, signal);
        const deleted = writes.filter(
          ({ document }, at) => document.deleted && answers[at]?.kind === 'written' && observing.has(idOf(document.bucket, document.key)),
        );
        if (deleted.length > 0) await record(deleted);
        return answers;
      },
    },
    watching: (observe) => async (request) => {
      // an observation of a tombstone deletes nothing
      if (request.reportsDeletion === true) return observe(request);
      const id = idOf(request.bucket.bucket, request.key);
      observing.set(id, (observing.get(id) ?? 0) + 1);
      try {
        return await observe(request);
      } finally {
        const others = (observing.get(id) ?? 1) - 1;
        if (others === 0) observing.delete(id);
        else observing.set(id, others);
      }
    },
  };
}

function idOf(bucket: string, key: string): string {
  return `${bucket}/${key}`;
}
