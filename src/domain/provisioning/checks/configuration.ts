/** Checks of the notification configuration of the bucket. */
import { canonicalJson } from '../canonical.ts';
import { otherInstallationOf } from '../names.ts';
import { ENTRIES_MAX, entriesWithout } from '../notification.ts';
import { completeTopic, overlapsOf } from '../overlap.ts';
import { blocking, healable, unchecked, type Check } from './finding.ts';

export const configurationUnknown: Check = ({ wish, observed: { notification } }) =>
  notification.ok
    ? undefined
    : unchecked(
        'connect.unknown-configuration',
        `the notification configuration of ${wish.bucket} contains something that this version does not know: ${notification.reason}`,
        'a write replaces the whole configuration, and would delete what is not known',
        `aws s3api get-bucket-notification-configuration --bucket ${wish.bucket}`,
      );

export const notificationOverlap: Check = ({ wish, wiring, observed: { notification } }) => {
  if (!notification.ok || wiring.entry === undefined) return undefined;
  const others = entriesWithout(notification.configuration, wiring.entry.id);
  const [first, ...more] = overlapsOf(wiring.entry, others);
  if (first === undefined) return undefined;
  const named = [first, ...more].map(({ id, arn }) => `${id} (${arn})`).join(', ');
  const topic = completeTopic({ entries: others, eventBridge: false });
  const plan = `tally bucket plan ${wish.bucket} --source`;
  const fix = topic === undefined ? `${plan} eventbridge` : `${plan} topic --topic ${topic}`;
  const fanOut = first.kind === 'topic' ? '' : '. Or put a topic between the bucket and its destination, and use --source topic';
  return blocking(
    'connect.overlap',
    `${wish.bucket} has notifications for the same events: ${named}`,
    `S3 refuses overlapping configurations of one bucket${topic === undefined ? fanOut : ''}. Otherwise: --source routed, or tally bucket pause-notification around the moment when the other one is made`,
    fix,
  );
};

export const tooManyEntries: Check = ({ wish, wiring, observed: { notification } }) => {
  if (!notification.ok || wiring.entry === undefined) return undefined;
  if (entriesWithout(notification.configuration, wiring.entry.id).length < ENTRIES_MAX) return undefined;
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

export const earlierInstallation: Check = ({ wish, observed: { notification } }) => {
  if (!notification.ok) return undefined;
  const found = notification.configuration.entries.find(({ id }) => otherInstallationOf(id, wish.installation) !== undefined);
  if (found === undefined) return undefined;
  return {
    code: 'connect.earlier-installation',
    severity: 'degraded',
    what: `${wish.bucket} has the notification ${found.id}, perhaps of an earlier installation of Tally`,
    why: 'it is not touched, because another installation may use it',
    fix: `TALLY_INSTALLATION=${otherInstallationOf(found.id, wish.installation) ?? ''}`,
    blocks: false,
  };
};
