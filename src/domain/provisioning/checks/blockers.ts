/**
 * What keeps a plan from being made: Tally would write over what it cannot read, take something away from others, or S3 would
 * refuse it.
 */
import { shellWords } from '../../commands.ts';
import { docsPage } from '../../doc-pages.ts';
import { existing, isRuleForeign, isTopicForeign, queueOf } from '../facts.ts';
import { isOfEarlierName, otherInstallationOf, ownerText, parseArn, shortRegistry, type Tags } from '../names.ts';
import { foreignEntries, type NotificationEntry } from '../notification.ts';
import { completeTopic, overlapsOf } from '../overlap.ts';
import { parsePolicy } from '../policy.ts';
import type { Wish } from '../wiring.ts';
import { blocking, unchecked, type Check, type Finding } from './finding.ts';

const configurationUnknown: Check = ({ wish, observed: { notification } }) =>
  notification.ok || wish.byHand === true
    ? undefined
    : unchecked(
        'connect.unknown-configuration',
        `the notification configuration of ${wish.bucket} contains something that this version does not know: ${notification.reason}`,
        'a write replaces the whole configuration, and would delete what is not known',
        `aws s3api get-bucket-notification-configuration --bucket ${wish.bucket}`,
      );

const policyUnreadable: Check = ({ wiring: { topic, queues }, observed }) => {
  const policies = [
    ...queues.map(({ arn }) => ({ arn, policy: queueOf(observed, arn)?.policy })),
    ...(topic === undefined ? [] : [{ arn: topic.arn, policy: existing(observed.topic)?.policy }]),
  ];
  const found = policies.find(({ policy }) => parsePolicy(policy) === undefined);
  if (found === undefined) return undefined;
  return unchecked(
    'connect.policy-unreadable',
    `the policy of ${found.arn} cannot be read`,
    'a write replaces the whole policy, and would delete what is not known',
    showPolicy(found.arn),
  );
};

/** The command that shows the policy of a topic or queue. */
function showPolicy(arn: string): string {
  const [, , service, region = '', , name = ''] = arn.split(':');
  return service === 'sns'
    ? `aws sns get-topic-attributes --region ${region} --topic-arn ${arn} --query Attributes.Policy`
    : `aws sqs get-queue-attributes --region ${region} --queue-url "$(aws sqs get-queue-url --region ${region} --queue-name ${name} --query QueueUrl --output text)" --attribute-names Policy`;
}

/** Names follow from TALLY_INSTALLATION, which a copied file of settings gives to a second registry. */
const topicForeign: Check = (facts) => {
  const { topic } = facts.wiring;
  if (topic === undefined || !isTopicForeign(facts)) return undefined;
  return foreign(facts.wish, 'connect.topic-foreign', `the topic ${topic.arn}`, existing(facts.observed.topic)?.tags);
};

const ruleForeign: Check = (facts) => {
  const { rule } = facts.wiring;
  if (rule === undefined || !isRuleForeign(facts)) return undefined;
  return foreign(facts.wish, 'connect.rule-foreign', `the rule ${rule.arn}`, existing(facts.observed.rule)?.tags);
};

function foreign(wish: Wish, code: string, what: string, tags: Tags | undefined): Finding {
  const { installation, registry } = wish;
  return blocking(
    code,
    `${what} ${ownerText(tags)}. By its name, from TALLY_INSTALLATION=${installation}, it would be that of this registry, ${registry}`,
    'it is left as it is, because a change would take the events away from its owner. Give this registry a name that no other one has, and plan again. If only the store of the owner was lost, restore it from its backup instead',
    `TALLY_INSTALLATION=${shortRegistry(wish)}`,
  );
}

const notificationOverlap: Check = ({ wish, wiring, observed: { notification } }) => {
  if (!notification.ok || wiring.entry === undefined) return undefined;
  const others = foreignEntries(notification.configuration, wish);
  const [first, ...more] = overlapsOf(wiring.entry, others);
  if (first === undefined) return undefined;
  const named = [first, ...more].map(({ id, arn }) => `${id} (${arn})`).join(', ');
  if (otherInstallationOf(first.id, wish) !== undefined) return otherRegistryOverlap(wish, first);
  const topic = completeTopic({ entries: others, eventBridge: false });
  const other = topic === undefined ? ['--source', 'eventbridge'] : ['--source', 'topic', '--topic', topic];
  const fanOut =
    first.kind === 'topic' || topic !== undefined
      ? ''
      : ' A topic between the bucket and its destination serves both, with --source topic;';
  return blocking(
    'connect.overlap',
    `${wish.bucket} has notifications for the same events: ${named}`,
    `S3 refuses overlapping configurations of one bucket.${fanOut} --source routed leaves the notification configuration as it is`,
    shellWords('tally', 'bucket', 'add', wish.bucket, ...other),
  );
};

/** Another registry may be in use: nothing is printed that takes its events away. */
function otherRegistryOverlap(wish: Wish, { id, arn }: NotificationEntry): Finding {
  const { bucket } = wish;
  const refused = 'S3 refuses overlapping configurations of one bucket';
  if (isOfEarlierName(id, wish)) {
    return blocking(
      'connect.overlap',
      `${bucket} has the notification ${id} (${arn}) for the same events, which this registry made while TALLY_INSTALLATION had another value`,
      `${refused}. With its former name this registry finds what it made`,
      `TALLY_INSTALLATION=${otherInstallationOf(id, wish) ?? ''}`,
    );
  }
  return blocking(
    'connect.overlap',
    `${bucket} has the notification ${id} (${arn}) of another registry of Tally for the same events`,
    `${refused}. That registry may be in use, so it keeps its notification. What to do if it is not: ${docsPage('docs/guides/connect.md#what-others-have')}`,
    `tally bucket add ${bucket} --source eventbridge`,
  );
}

/** Tally does not make the topics of others. */
const namedTopicMissing: Check = ({ wiring: { subscription, topic }, observed }) => {
  if (observed.topic !== 'absent' || subscription === undefined || (topic !== undefined && topic.isForeign !== true)) return undefined;
  const { region = '', resource = '' } = parseArn(subscription.topicArn) ?? {};
  return blocking(
    'connect.topic-missing',
    `there is no topic ${subscription.topicArn}`,
    'Tally subscribes the bucket queue to a topic of yours, and does not make it',
    `aws sns create-topic --region ${region} --name ${resource}`,
  );
};

/** In the order in which they are shown. */
export const blockers: readonly Check[] = [
  configurationUnknown,
  policyUnreadable,
  topicForeign,
  ruleForeign,
  notificationOverlap,
  namedTopicMissing,
];
