/**
 * What buckets share may have been altered by others, so that the events of all of them were lost for a while. An apply for one of
 * them restores it for all, perhaps before the watch has looked at the others: so each of them gets a gap.
 */
import { connectionSchema } from '../../domain/provisioning/connection.ts';
import { isTargetRight } from '../../domain/provisioning/facts.ts';
import type { Change, Plan } from '../../domain/provisioning/planning/plan.ts';
import { bucketsIn, isOnlyShort } from '../../domain/provisioning/shared-rule.ts';
import { recordsBucket } from '../../domain/provisioning/trail.ts';
import { wiringOf, type Wish } from '../../domain/provisioning/wiring.ts';
import { openChangeGap } from '../gaps/connection-gaps.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';
import { wishOfConnection } from './wishes.ts';

/** Opens the gaps of the other buckets whose events the change lets pass again. */
export async function openGapsOfOthers(
  dependencies: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  plan: Pick<Plan, 'wish' | 'wiring'>,
  change: Change,
): Promise<void> {
  const isServed = servedBy(plan, change);
  if (isServed === undefined) return;
  const all = await listAllRecords(dependencies.state, 'connection', connectionSchema);
  for (const other of all)
    if (other.bucket !== plan.wish.bucket && other.state === 'applied' && isServed(wishOfConnection(other)))
      await openChangeGap(dependencies, other, 'what the bucket shares with others was altered, and is restored');
}

/** Whether the change lets the events of a wish pass again. Undefined: it lets none pass that did not pass before. */
function servedBy(
  { wish, wiring: { rule, subscription } }: Pick<Plan, 'wish' | 'wiring'>,
  change: Change,
): ((other: Wish) => boolean) | undefined {
  if (restoresRule(wish, change)) {
    const named = new Set(bucketsIn(wish, JSON.stringify(rule?.pattern)));
    return ({ source, region, bucket }) => source === wish.source && region === wish.region && named.has(bucket);
  }
  if (restoresTopic(change))
    return (other) => {
      const theirs = wiringOf(other).subscription;
      return theirs !== undefined && theirs.topicArn === subscription?.topicArn && theirs.queueArn === subscription.queueArn;
    };
  if (change.part !== 'trail') return undefined;
  const { name, before, after } = change;
  return (other) => other.trailArn === name && !recordsBucket(before, other) && recordsBucket(after, other);
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
