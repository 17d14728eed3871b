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
  earlierInstallation,
} from './configuration.ts';
import { ruleForeign, topicForeign } from './owner.ts';
import { deliveryDenied } from './denials.ts';
import { queueKey, topicKey } from './keys.ts';
import { topicMissing, topicFifo, topicElsewhere, topicIncomplete, topicWithoutExpirations, topicPolicyMissing } from './topic.ts';
import { queuePolicyMissing, queueFifo, queueRedrive, queueElsewhere } from './queues.ts';
import {
  subscriptionMissing,
  subscriptionPending,
  subscriptionFiltered,
  subscriptionRaw,
  subscriptionRedrive,
  subscriptionUnauthenticated,
} from './subscription.ts';
import { ruleMissing, ruleDisabled, rulePattern, ruleTarget, ruleTransformer, targetDeadLetters } from './rule.ts';
import { trailElsewhere, trailOfItself, trailOfOrganization, trailSelector, trailStopped, trailUnknown } from './trail.ts';
import type { Check } from './finding.ts';

/** All checks, in the order in which they are shown. */
export const checks: readonly Check[] = [
  configurationUnknown,
  storeElsewhere,
  topicForeign,
  ruleForeign,
  queueElsewhere,
  queueFifo,
  topicFifo,
  topicElsewhere,
  notificationOverlap,
  tooManyEntries,
  topicIncomplete,
  topicMissing,
  topicPolicyMissing,
  topicKey,
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
  earlierInstallation,
  topicWithoutExpirations,
  queueRedrive,
];
