/** Publishes the probes of Tally's own topics. */
import { probeText } from '../events/probe.ts';
import type { ConnectionSpec } from '../records/bucket.ts';
import { isProbeDue } from './probe.rules.ts';
import type { WithPorts } from '../store/store.ts';
import type { Provisioner } from './aws/provisioner.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../store/stored.ts';
import { desired } from './sources/sources.ts';

/** The topic of Tally's by which the bucket's events come; undefined if there is none. */
export function ownTopicOf(spec: ConnectionSpec): string | undefined {
  return spec.topicArn === undefined ? desired(spec).subscription?.topicArn : undefined;
}

/**
 * Publishes one through the topic of the bucket, if that is Tally's and one is due. `isLost`: the last one did not arrive. It is
 * stored first, since it may arrive at once. Throws what AWS refuses, and the store's fault.
 */
export async function sendProbe(
  { state, clock, aws }: WithPorts<'state' | 'clock'> & { readonly aws: Pick<Provisioner, 'publish'> },
  spec: ConnectionSpec,
  isLost: boolean,
  signal?: AbortSignal,
): Promise<void> {
  const topicArn = ownTopicOf(spec);
  if (topicArn === undefined) return;
  const ref = refs.probe(topicArn);
  const sentAtMs = clock.nowMs();
  // many buckets share the topic, and each visit comes here
  if (!isProbeDue(await readRecord(state, ref, signal), sentAtMs)) return;
  await updateRecord(state, ref, () => ({ topicArn, sentAtMs, hasArrived: false, isLost }));
  try {
    await aws.publish(topicArn, probeText({ topicArn, sentAtMs }), signal);
  } catch (error) {
    // it says nothing about the way
    await removeRecord(state, ref.id);
    throw error;
  }
}
