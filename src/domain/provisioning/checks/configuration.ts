/** Checks of the notification configuration of the bucket. */
import { shellWords } from '../../commands.ts';
import { docsPage } from '../../doc-pages.ts';
import { canonicalJson } from '../canonical.ts';
import { isOfEarlierName, otherInstallationOf } from '../names.ts';
import { ENTRIES_MAX, foreignEntries, type NotificationEntry } from '../notification.ts';
import { completeTopic, overlapsOf } from '../overlap.ts';
import type { Wish } from '../wiring.ts';
import { blocking, healable, unchecked, type Check, type Finding } from './finding.ts';

export const configurationUnknown: Check = ({ wish, observed: { notification } }) =>
  notification.ok || wish.byHand === true
    ? undefined
    : unchecked(
        'connect.unknown-configuration',
        `the notification configuration of ${wish.bucket} contains something that this version does not know: ${notification.reason}`,
        'a write replaces the whole configuration, and would delete what is not known',
        `aws s3api get-bucket-notification-configuration --bucket ${wish.bucket}`,
      );

/** MinIO and others answer the requests of S3, and notify by other ways: a queue of SQS is not among them. */
export const storeElsewhere: Check = ({ wish, observed: { notification } }) => {
  const foreign = notification.ok && notification.configuration.entries.find(({ arn }) => /^arn:(?!aws[a-z-]*:)/.test(arn));
  if (!foreign || wish.byHand === true) return undefined;
  return unchecked(
    'connect.other-store',
    `${wish.bucket} sends its notifications to ${foreign.arn}, which is not in AWS`,
    'the store only speaks the protocol of S3: it notifies by webhook, AMQP or Kafka, and not by SNS or EventBridge',
    `see ${docsPage('docs/guides/connect.md#special-buckets')}`,
  );
};

export const notificationOverlap: Check = ({ wish, wiring, observed: { notification } }) => {
  if (!notification.ok || wiring.entry === undefined) return undefined;
  const others = foreignEntries(notification.configuration, wish);
  const [first, ...more] = overlapsOf(wiring.entry, others);
  if (first === undefined) return undefined;
  const named = [first, ...more].map(({ id, arn }) => `${id} (${arn})`).join(', ');
  if (otherInstallationOf(first.id, wish) !== undefined) return otherRegistryOverlap(wish, first);
  const topic = completeTopic({ entries: others, eventBridge: false });
  const other = topic === undefined ? ['--source', 'eventbridge'] : ['--source', 'topic', '--topic', topic];
  const fix = shellWords('tally', 'bucket', 'plan', wish.bucket, ...other);
  const fanOut =
    first.kind === 'topic' || topic !== undefined
      ? ''
      : ' A topic between the bucket and its destination serves both, with --source topic;';
  return blocking(
    'connect.overlap',
    `${wish.bucket} has notifications for the same events: ${named}`,
    `S3 refuses overlapping configurations of one bucket.${fanOut} --source routed leaves the notification configuration as it is`,
    fix,
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
    `${refused}. That registry may be in use, so it keeps its notification. What to do if it is not: ${docsPage('docs/guides/shared-notification.md#what-happens-to-what-others-have')}`,
    `tally bucket plan ${bucket} --source eventbridge`,
  );
}

export const tooManyEntries: Check = ({ wish, wiring, observed: { notification } }) => {
  if (!notification.ok || wiring.entry === undefined) return undefined;
  if (foreignEntries(notification.configuration, wish).length < ENTRIES_MAX) return undefined;
  return blocking(
    'connect.limit',
    `${wish.bucket} has ${ENTRIES_MAX} notification configurations already`,
    'S3 allows no more',
    `tally bucket plan ${wish.bucket} --source eventbridge`,
  );
};

export const notificationMissing: Check = (facts) => {
  const { wish, wiring, observed } = facts;
  if (!observed.notification.ok || wiring.entry === undefined) return undefined;
  if (observed.notification.configuration.entries.some(({ id }) => id === wiring.entry?.id)) return undefined;
  const why = 'S3 sends no events to Tally: the configuration was not made, or it was replaced';
  return healable(facts, 'connect.notification-missing', `${wish.bucket} has no notification with the Id ${wiring.entry.id}`, why);
};

export const notificationAltered: Check = (facts) => {
  const { wish, wiring, observed } = facts;
  const { entry } = wiring;
  const found = observed.notification.ok && observed.notification.configuration.entries.find(({ id }) => id === entry?.id);
  if (entry === undefined || !found) return undefined;
  const [is, should] = [found, entry].map(({ arn, events, filter }) => canonicalJson({ arn, events, filter }));
  if (is === should) return undefined;
  return healable(
    facts,
    'connect.notification-altered',
    `the notification ${entry.id} of ${wish.bucket} was changed: ${is}`,
    `it must be ${should}, or events are missing`,
  );
};

export const eventBridgeOff: Check = (facts) => {
  const { wish, wiring, observed } = facts;
  if (!wiring.eventBridge || !observed.notification.ok || observed.notification.configuration.eventBridge) return undefined;
  return healable(
    facts,
    'connect.eventbridge-off',
    `${wish.bucket} does not send its events to EventBridge`,
    'the rule of the bucket matches nothing',
  );
};
