/**
 * What keeps a plan from being made: Tally would write over what it cannot read, take something away from others, or S3 would
 * refuse it.
 */
import { shellWords } from '../../commands.ts';
import { docsPage } from '../../doc-pages.ts';
import { existing, isRuleForeign, queueOf } from '../facts.ts';
import { otherInstallationOf, ownerText, parseArn } from '../names.ts';
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

const ruleForeign: Check = (facts) => {
  const { rule } = facts.wiring;
  if (rule === undefined || !isRuleForeign(facts)) return undefined;
  return blocking(
    'connect.rule-foreign',
    `the rule ${rule.arn} ${ownerText(existing(facts.observed.rule)?.tags)}`,
    'two installations have one name, so it is left as it is: a change would take the events away from its owner',
    `aws events list-tags-for-resource --region ${facts.wish.region} --resource-arn ${rule.arn}`,
  );
};

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
function otherRegistryOverlap({ bucket }: Wish, { id, arn }: NotificationEntry): Finding {
  return blocking(
    'connect.overlap',
    `${bucket} has the notification ${id} (${arn}) of another registry of Tally for the same events`,
    `S3 refuses overlapping configurations of one bucket. That registry may be in use, so it keeps its notification. What to do if it is not: ${docsPage('docs/guides/connect.md#what-others-have')}`,
    `tally bucket add ${bucket} --source eventbridge`,
  );
}

/** Tally does not make the topics of others. */
const namedTopicMissing: Check = ({ wish, wiring: { subscription }, observed }) => {
  if (observed.topic !== 'absent' || subscription === undefined || wish.topicArn === undefined) return undefined;
  const { region = '', resource = '' } = parseArn(subscription.topicArn) ?? {};
  return blocking(
    'connect.topic-missing',
    `there is no topic ${subscription.topicArn}`,
    'Tally subscribes the bucket queue to a topic of yours, and does not make it',
    `aws sns create-topic --region ${region} --name ${resource}`,
  );
};

/** In the order in which they are shown. */
export const blockers: readonly Check[] = [configurationUnknown, policyUnreadable, ruleForeign, notificationOverlap, namedTopicMissing];
