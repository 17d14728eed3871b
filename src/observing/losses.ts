/** What is lost with a message whose body no process reads: SQS moved it, or it would end the process that reads it. */
import type { FaultCode } from '../base/fault.ts';
import { bucketsNamedIn } from '../events/dead-letter.ts';
import { bucketsFedBy, type GapReports } from './reports.ts';
import type { WithPorts, StateStore } from '../store/store.ts';
import type { QueueMessage } from '../aws/queues.ts';
import { listAllIds, refs } from '../store/stored.ts';

interface LossParts extends WithPorts<'state' | 'clock'> {
  /** All bucket queues of this process. */
  readonly bucketQueueUrls: readonly string[];
}

/** The names of the connected buckets, those with a record that this version cannot read included. Throws the store's fault. */
export async function connectedBuckets(state: StateStore): Promise<ReadonlySet<string>> {
  const { length } = refs.bucket('').id;
  return new Set((await listAllIds(state, 'bucket')).map((id) => id.slice(length)));
}

/** The connected buckets that the body names; if it names none, all whose events may come from these queues. Throws the store's fault. */
export async function bucketsOfUnread(
  body: string,
  queueUrls: readonly string[],
  { state, clock, bucketQueueUrls }: LossParts,
): Promise<readonly string[]> {
  const named = bucketsNamedIn(body, await connectedBuckets(state));
  return named.length > 0 ? named : bucketsFedBy(state, { queueUrls, bucketQueueUrls, nowMs: clock.nowMs() });
}

/**
 * Creates what opens the gaps of the letters of one reading. It remembers its reports, because one of a bucket covers all letters that
 * were sent before, and each takes a write. Throws the store's fault.
 */
export function createLossReports({ clock, gaps }: WithPorts<'clock'> & { readonly gaps: Pick<GapReports, 'report'> }) {
  const reportedMs = new Map<string, number>();

  return async function reportLosses(buckets: readonly string[], { sentAtMs }: Pick<QueueMessage, 'sentAtMs'>): Promise<void> {
    const due = buckets.filter((bucket) => (reportedMs.get(bucket) ?? -Infinity) < sentAtMs);
    // never before the event by SQS's clock: if this machine's clock is slow, an earlier reconcile would close the gap
    const seenAtMs = Math.max(clock.nowMs(), sentAtMs);
    await Promise.all(due.map((bucket) => gaps.report({ bucket, kind: 'loss', reason: `dead letter: ${MOVED}`, seenAtMs })));
    for (const bucket of due) reportedMs.set(bucket, seenAtMs);
  };
}

const MOVED = 'message.moved' satisfies FaultCode;
