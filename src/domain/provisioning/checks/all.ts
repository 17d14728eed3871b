/**
 * The checks of a connection. Each is a function of what was read, with a code, and says what is wrong, why it matters, and a
 * command or statement to paste. A plan shows those that block it; the doctor shows all.
 */
import {
  configurationUnknown,
  storeElsewhere,
  notificationOverlap,
  tooManyEntries,
  notificationMissing,
  notificationAltered,
  eventBridgeOff,
} from './configuration.ts';
import { ruleForeign, topicForeign } from './owner.ts';
import { deliveryDenied, queueKey, topicKey } from './keys.ts';
import {
  topicMissing,
  topicFifo,
  topicElsewhere,
  topicIncomplete,
  topicOfOtherAccount,
  topicWithoutExpirations,
  topicPolicyMissing,
  subscriptionMissing,
  subscriptionPending,
  subscriptionFiltered,
  subscriptionRaw,
  subscriptionRedrive,
  subscriptionUnauthenticated,
} from './topic.ts';
import {
  deadLettersMissing,
  queuePolicyMissing,
  queueFifo,
  queueRedrive,
  undelivered,
  undeliveredMissing,
  letterRetention,
  queueDelay,
  queueMessageSize,
  queueRetention,
} from './queues.ts';
import { ruleMissing, ruleDisabled, rulePattern, ruleTarget, ruleTransformer, targetDeadLetters } from './rule.ts';
import { trailElsewhere, trailOfItself, trailOfOrganization, trailSelector, trailStopped, trailUnknown } from './trail.ts';
import type { Check } from './finding.ts';

/** The checks of the queues themselves, which every way of the events ends in. */
export const queueChecks: readonly Check[] = [
  queueFifo,
  deadLettersMissing,
  queueMessageSize,
  queueRetention,
  queueRedrive,
  letterRetention,
  queueDelay,
];

/** All checks, in the order in which they are shown. */
export const checks: readonly Check[] = [
  configurationUnknown,
  storeElsewhere,
  topicForeign,
  ruleForeign,
  topicFifo,
  topicElsewhere,
  topicOfOtherAccount,
  notificationOverlap,
  tooManyEntries,
  topicIncomplete,
  topicMissing,
  topicPolicyMissing,
  topicKey,
  undeliveredMissing,
  queuePolicyMissing,
  queueKey,
  deliveryDenied,
  subscriptionMissing,
  subscriptionPending,
  subscriptionFiltered,
  subscriptionRaw,
  subscriptionRedrive,
  subscriptionUnauthenticated,
  ruleMissing,
  ruleDisabled,
  rulePattern,
  ruleTarget,
  ruleTransformer,
  targetDeadLetters,
  notificationMissing,
  notificationAltered,
  eventBridgeOff,
  trailUnknown,
  trailElsewhere,
  trailOfItself,
  trailOfOrganization,
  trailStopped,
  trailSelector,
  topicWithoutExpirations,
  undelivered,
  ...queueChecks,
];
