/**
 * What buckets share may have been altered by others, so that the events of all of them were lost for a while. An apply for one of
 * them restores it for all, perhaps before the watch has looked at the others: so each of them gets a gap.
 */
import { connectionSchema, type ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { isTargetRight } from '../../domain/provisioning/facts.ts';
import type { Change, Plan } from '../../domain/provisioning/planning/plan.ts';
import { bucketsIn, isOnlyShort } from '../../domain/provisioning/shared-rule.ts';
import { wiringOf, type Wish } from '../../domain/provisioning/wiring.ts';
import { openChangeGap } from '../gaps/changed-connection.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';
import { wishOfConnection } from './wishes.ts';

/** Opens the gaps of the other buckets whose events the change lets pass again. */
export async function openGapsOfOthers(
  dependencies: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  { wish, wiring: { rule, subscription } }: Pick<Plan, 'wish' | 'wiring'>,
  change: Change,
): Promise<void> {
  const [ofRule, ofTopic] = [restoresRule(wish, change), restoresTopic(change)];
  if (!ofRule && !ofTopic) return;
  const named = new Set(bucketsIn(wish, JSON.stringify(rule?.pattern)));
  const isServed = (other: ConnectionRecord): boolean => {
    if (ofRule) return other.source === wish.source && other.region === wish.region && named.has(other.bucket);
    const theirs = wiringOf(wishOfConnection(other)).subscription;
    return theirs !== undefined && theirs.topicArn === subscription?.topicArn && theirs.queueArn === subscription.queueArn;
  };
  const all = await listAllRecords(dependencies.state, 'connection', connectionSchema);
  for (const other of all)
    if (other.bucket !== wish.bucket && other.state === 'applied' && isServed(other))
      await openChangeGap(dependencies, other, 'what the bucket shares with others was altered, and is restored');
}

/** A rule that is there, and did not do what it must for the buckets that it has already. */
function restoresRule(wish: Wish, change: Change): boolean {
  if (change.part === 'target') {
    // the dead-letter queue gets only what cannot be delivered
    const { deadLetterArn: _, ...wanted } = change.rule.target;
    return change.before === undefined || !isTargetRight(wanted, change.before);
  }
  return change.part === 'rule' && change.action === 'change' && !isOnlyShort(wish, change.rule, change.before);
}

/** A topic or subscription that others need already, or one that has withheld events. */
function restoresTopic(change: Change): boolean {
  if (change.part === 'topic') return true;
  if (change.part !== 'subscription') return false;
  return change.action === 'create' || Object.keys(change.before).some((name) => name !== 'RedrivePolicy');
}
