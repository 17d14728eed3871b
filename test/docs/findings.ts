/** What the findings of the doctor mean. Their texts with names, reasons and commands are made where they are found. */
import { globSync } from 'node:fs';
import { faults } from '../../src/domain/fault.ts';
import { requestErrors } from '../../src/domain/request-error.ts';
import { ROOT, textOf } from './pages.ts';

const meanings: Readonly<Record<string, string>> = {
  'connect.by-hand':
    'A person wired the bucket, and no event has arrived by its source since. The first one shows that it works: put an object.',
  'connect.clock-skew': 'The clock of this process and that of AWS differ. Gaps wait as long as they do: set the clock that is wrong.',
  'connect.dead-letters-missing':
    'The dead-letter queue that the redrive policy names does not exist. What can never succeed would be lost.',
  'connect.denied-by-policy':
    'A policy denies what Tally allows, and a Deny wins. Tally never changes statements of others: its owner has to.',
  'connect.eventbridge-off':
    'The bucket does not send its events to EventBridge. An apply switches it on; because that touches others, it needs the token of a plan.',
  'connect.kms-denied': 'A service that sends may not use the key of a queue or topic. What it sends is lost without an error.',
  'connect.kms-managed-key':
    'A queue or topic has the AWS managed key, which no service may use to send. Take the key of SQS or one of yours.',
  'connect.kms-unchecked': 'The policy of a key could not be read. The finding has the statement that the key needs.',
  'connect.left-over':
    'Parts of an earlier source, queue or name are still in AWS. They go once a re-index has closed the gap of the change, by themselves or with the next apply.',
  'connect.letter-retention': 'The dead-letter queue keeps messages for too short a time. SQS counts from when a message was first sent.',
  'connect.limit': 'The bucket has as many notifications as S3 allows.',
  'connect.not-enriched':
    'S3 refuses the HEAD or the tags of an object, so documents lack what the enrichment of the bucket asks for. Once S3 answers, a re-index fills it in.',
  'connect.not-made': 'Parts in AWS are not made yet. `tally bucket plan` shows them.',
  'connect.notification-altered': "Tally's notification of the bucket was changed, so events are missing. An apply makes it again.",
  'connect.notification-missing':
    "Tally's notification of the bucket is gone. An apply makes it again. If Terraform removed it, see [A bucket that others use](../guides/shared-notification.md#where-terraform-or-cloudformation-manages-the-notification).",
  'connect.other-store': 'The bucket is not in AWS, so there is nothing to plan ([special buckets](../guides/connect.md#special-buckets)).',
  'connect.policy-size': 'A policy would be larger than AWS allows. Remove statements that nothing needs any more.',
  'connect.policy-unreadable': 'A policy cannot be read. A write would replace what is not known, so there is none.',
  'connect.queue-changed':
    '`TALLY_QUEUE_URL` was changed after the bucket was connected, so its events arrive in a queue that is not read. Apply the bucket again.',
  'connect.queue-delay': 'The bucket queue delays each message by more than a minute.',
  'connect.queue-fifo': 'The queue is a FIFO queue. S3, SNS and EventBridge send to standard queues here.',
  'connect.queue-message-size': 'A queue takes smaller messages than events may be, and refuses the rest.',
  'connect.queue-policy': 'The policy of a queue lacks the statement that admits the topic or the rule. An apply adds it.',
  'connect.queue-retention': 'The bucket queue keeps messages for too short a time, so that an outage loses events.',
  'connect.redrive': 'The bucket queue has no dead-letter queue, permits too few receives, or is its own dead-letter queue.',
  'connect.rule-disabled': 'The rule is disabled. No event of the bucket reaches the queue.',
  'connect.rule-foreign':
    'The rule with the name of this installation was made by another registry. Give one of them another `TALLY_INSTALLATION`.',
  'connect.rule-missing': 'The rule does not exist. An apply makes it.',
  'connect.rule-pattern': 'The pattern of the rule does not let all needed events pass. An apply corrects a rule of Tally.',
  'connect.rule-target': 'The rule does not send to the bucket queue or to the topic. An apply corrects it.',
  'connect.rule-transformer':
    'What the rule sends cannot be read: its input transformer is not [the known one](../guides/shared-notification.md#by-an-audit-trail).',
  'connect.rules-near-limit': 'The event bus is nearly full of rules. AWS raises this quota on request.',
  'connect.subscription-filtered': 'The subscription has a filter policy. Events that do not match it are not delivered.',
  'connect.subscription-missing': 'The bucket queue is not subscribed to the topic. An apply subscribes it.',
  'connect.subscription-pending': 'The subscription is not confirmed. SNS delivers nothing until it is.',
  'connect.subscription-raw':
    'The subscription uses raw delivery, so that a record could pass for one that came straight from its service.',
  'connect.subscription-redrive': 'The subscription has no dead-letter queue, so that what SNS cannot deliver is lost.',
  'connect.subscription-unauthenticated':
    'Anyone who holds a message can unsubscribe the queue by the address in it. An apply subscribes it again, authenticated.',
  'connect.target-dead-letters': 'The target of the rule has no dead-letter queue, so that what EventBridge cannot deliver is lost.',
  'connect.topic-account': 'The topic is in another account than the rule. Such a target needs a role, which Tally does not make.',
  'connect.topic-fifo': 'The topic is a FIFO topic. S3 and EventBridge publish to standard topics only.',
  'connect.topic-foreign':
    'The topic with the name of this installation was made by another registry. Give one of them another `TALLY_INSTALLATION`.',
  'connect.topic-incomplete':
    'The topic of others does not get all created and removed events of the bucket. Its owner has to change the notification.',
  'connect.topic-missing': 'The topic does not exist. An apply makes one of Tally; one of yours is yours to make.',
  'connect.topic-policy': 'The policy of the topic does not let S3 or EventBridge publish.',
  'connect.topic-policy-condition':
    'The statement for EventBridge has a condition. SNS supports none for it, so that every event is dropped.',
  'connect.topic-region': 'The topic is in another region than the bucket. S3 and rules publish only to topics of their region.',
  'connect.topic-without-expirations':
    'The topic gets no expirations. Objects that a lifecycle rule removes leave the index when Tally looks, once a day.',
  'connect.trail-account': 'The trail is of another account than the bucket, and the rule matches only what trails of its account record.',
  'connect.trail-limit': 'The trail has no room for another selector. Take another trail.',
  'connect.trail-missing': 'The trail of `TALLY_TRAIL_ARN` does not exist.',
  'connect.trail-organization': 'The trail belongs to the organisation. Only its management account can change it.',
  'connect.trail-own-bucket': 'The trail writes its log files into the bucket, and would record its own deliveries without end.',
  'connect.trail-region': 'The trail does not record the region of the bucket, so the rule matches nothing.',
  'connect.trail-selector':
    "The trail does not record the bucket's data events. An apply adds the selector to the trail of `TALLY_TRAIL_ARN`; to any other trail its owner adds it beside those that it has.",
  'connect.trail-stopped': 'The trail is stopped, so the rule matches nothing.',
  'connect.trail-unchecked':
    'No trail is known that records the bucket. Name one in `TALLY_TRAIL_ARN` or `TALLY_TRAIL_BUCKET`, or add the printed selector to a trail, beside those that it has.',
  'connect.trail-unreadable': 'The selectors of the trail cannot be read. A write would replace them, so there is none.',
  'connect.undelivered':
    'Messages could not be delivered to the bucket queue. Correct the policy or the key that kept them away; a re-index finds what they were about.',
  'connect.undelivered-missing': 'The queue for what cannot be delivered does not exist in the region of the bucket. An apply makes it.',
};

/** Each finding of the code with its meaning. Throws if one has none, or if a meaning has no finding. */
export function findings(): readonly (readonly [code: string, meaning: string])[] {
  const sources = globSync('src/**/*.ts', { cwd: ROOT }).map(textOf);
  const named = new Set(sources.flatMap((source) => [...source.matchAll(/'(connect\.[a-z-]+)'/g)].map(([, code = '']) => code)));
  const found = [...named].filter((code) => !(code in faults) && !(code in requestErrors)).toSorted();
  const odd = [...found.filter((code) => !(code in meanings)), ...Object.keys(meanings).filter((code) => !named.has(code))];
  if (odd.length > 0) throw new Error(`docs/findings.ts and the code do not have the same findings: ${odd.join(', ')}`);
  return found.map((code) => [code, meanings[code] ?? '']);
}
