/** The source `notification`: an entry in the bucket's notification configuration. The same document has the switch for EventBridge. */
import type { EnrichMode, ConnectionSpec } from '../../records/bucket.ts';
import { shellWords } from '../../base/commands.ts';
import { docsPage } from '../../base/doc-pages.ts';
import { blocking } from '../finding.rules.ts';
import { isTallysTopic, markOf, topicArnOf } from '../names.rules.ts';
import {
  entriesWithout,
  foreignEntries,
  sameEntries,
  sdkConfiguration,
  completeTopic,
  overlap,
  type NotificationConfiguration,
  parseNotification,
} from '../notification.rules.ts';
import type { Change, Kept, Touched } from '../plan.rules.ts';
import { ownedBucket, through, type Check, type Desired, type Look, type Tools } from './look.ts';
import { canonicalJson } from '../policy.rules.ts';
import type { OwnedBucket } from '../aws/provisioner.ts';
import { RequestError } from '../../base/request-error.ts';

const EVENTS = ['s3:ObjectCreated:*', 's3:ObjectRemoved:*', 's3:LifecycleExpiration:*'];
const STORAGE_EVENTS = ['s3:LifecycleTransition', 's3:ObjectRestore:*', 's3:IntelligentTiering'];

/** The events that a bucket with this enrichment must send. */
function eventsFor(enrich: EnrichMode): readonly string[] {
  switch (enrich) {
    case 'none':
      return EVENTS;
    case 'head':
      return [...EVENTS, ...STORAGE_EVENTS];
    case 'tags':
      return [...EVENTS, ...STORAGE_EVENTS, 's3:ObjectTagging:*'];
  }
}

export function desiredNotification(spec: ConnectionSpec): Desired {
  const arn = topicArnOf(spec.installation, spec, 'events');
  return {
    ...through(spec, 'events'),
    entry: { kind: 'topic', id: markOf(spec), arn, events: eventsFor(spec.enrich), filter: [] },
  };
}

export function notificationChanges(look: Look): readonly Change[] {
  const {
    spec,
    desired: { entry, eventBridge = false },
    observed: { notification },
  } = look;
  if (!notification.ok) return [];
  const before = notification.configuration;
  const entries = entry === undefined ? before.entries : [...foreignEntries(before, spec), entry];
  const after = { entries, eventBridge: before.eventBridge || eventBridge };
  if (sameEntries(before.entries, after.entries) && before.eventBridge === after.eventBridge) return [];
  const isThere = entry !== undefined && before.entries.some(({ id }) => id === entry.id);
  return [changeOf(look, isThere ? 'change' : 'create', before, after)];
}

/** Removes only Tally's own entry, by its Id. */
export function notificationRemoval(look: Look): Change | Kept | undefined {
  const {
    spec,
    desired: { entry },
    observed: { notification },
  } = look;
  if (entry === undefined) return undefined;
  if (!notification.ok) return { name: spec.bucket, reason: notification.reason };
  const before = notification.configuration;
  const entries = entriesWithout(before, entry.id);
  return entries.length === before.entries.length ? undefined : changeOf(look, 'remove', before, { ...before, entries });
}

function changeOf(
  { spec, tools }: Look,
  action: Change['action'],
  before: NotificationConfiguration,
  after: NotificationConfiguration,
): Change {
  // a broken destination of another owner must not prevent the removal
  const isRemoval = action === 'remove';
  const write = { bucket: ownedBucket(spec), before, after, id: markOf(spec), skipValidation: isRemoval };
  return {
    part: 'notification',
    action,
    name: spec.bucket,
    before: sdkConfiguration(before),
    after: sdkConfiguration(after),
    touches: isRemoval ? [] : touchedBy(spec, before, after),
    make: async (signal) => ((await writeNotification(tools, write, signal)) === 'waiting' ? 'waiting' : undefined),
  };
}

/** Every other entry, because a concurrent change of it would be lost; and the switch, because others' rules may match all of S3's events. */
function touchedBy(spec: ConnectionSpec, before: NotificationConfiguration, after: NotificationConfiguration): readonly Touched[] {
  const arn = `arn:${spec.partition}:s3:::${spec.bucket}`;
  return [
    ...foreignEntries(before, spec).map((entry) => ({ kind: 'destination', arn: entry.arn, after: 's3:TestEvent' }) as const),
    ...(before.eventBridge === after.eventBridge ? [] : [{ kind: 'switch', arn, before: false, after: true } as const]),
  ];
}

/** The part that this version does not know may be in order. */
export const configurationUnknown: Check = ({ spec: { bucket, byHand }, observed: { notification } }) => {
  if (notification.ok || byHand === true) return undefined;
  const what = `the notification configuration of ${bucket} contains something that this version does not know: ${notification.reason}`;
  const why = 'a write replaces the whole configuration, so it would delete the unknown part';
  const fix = `aws s3api get-bucket-notification-configuration --bucket ${bucket}`;
  return { ...blocking('connect.unknown-configuration', what, why, fix), severity: 'unknown' };
};

export const notificationOverlap: Check = ({ spec, desired: { entry }, observed: { notification } }) => {
  if (!notification.ok || entry === undefined) return undefined;
  const others = foreignEntries(notification.configuration, spec);
  const overlaps = others.filter((other) => overlap(entry, other));
  if (overlaps.length === 0) return undefined;
  // another registry's topic is not for this one
  const entries = others.filter(({ arn }) => !isTallysTopic(arn));
  const topic = completeTopic({ entries, eventBridge: false });
  const other = topic === undefined ? ['--source', 'eventbridge'] : ['--source', 'topic', '--topic', topic];
  return blocking(
    'connect.overlap',
    `${spec.bucket} has notifications for the same events: ${overlaps.map(({ id, arn }) => `${id} (${arn})`).join(', ')}`,
    `S3 refuses overlapping configurations of one bucket. Alternatives, best first: ${docsPage('docs/guides/connect.md#if-another-notification-is-in-the-way')}`,
    shellWords('tally', 'bucket', 'add', spec.bucket, ...other),
  );
};

/** Two reads this far apart notice a change that is under way. */
const CALM_MS = 2_000;
/** S3 usually shows a new configuration within a second. Each further look waits twice as long. */
const SHOWN_MS = 1_000;
/** Looks after 1, 3 and 7 s. */
const LOOKS_MAX = 3;

interface NotificationWrite {
  readonly bucket: OwnedBucket;
  readonly before: NotificationConfiguration;
  readonly after: NotificationConfiguration;
  /** The Id of Tally's entry. */
  readonly id: string;
  readonly skipValidation: boolean;
}

/**
 * Writes a bucket's notification configuration. It is one document without a version, so nobody can notice someone else's write between
 * Tally's last read and its PUT. Tally notices all others:
 *
 *   read ──► wait 2 s ──► read again, the same? ──► PUT ──► wait ──► read: ours is there, and all others are as they were
 *              └── different: nothing is written            └── else `connect.changed-meanwhile`, with what was seen
 *
 * One call sends at most one PUT. If S3 refuses it for the moment, the error is thrown, and the caller reads and plans again.
 * `again`: someone changed it meanwhile, and nothing was written. `waiting`: S3 does not show the write yet.
 */
async function writeNotification(tools: Tools, write: NotificationWrite, signal?: AbortSignal): Promise<'written' | 'again' | 'waiting'> {
  const { aws, clock } = tools;
  await clock.sleep(CALM_MS, signal);
  const again = parseNotification(await aws.notificationOf(write.bucket, signal));
  if (!again.ok || !same(again.configuration, write.before)) return 'again';
  await aws.putNotification(write.bucket, write.after, { skipValidation: write.skipValidation }, signal);
  return verify(tools, write, signal);
}

async function verify({ aws, clock }: Tools, write: NotificationWrite, signal?: AbortSignal): Promise<'written' | 'waiting'> {
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    await clock.sleep(SHOWN_MS * 2 ** look, signal);
    const read = parseNotification(await aws.notificationOf(write.bucket, signal));
    if (read.ok && same(read.configuration, write.after)) return 'written';
    const theirs = read.ok && entriesWithout(read.configuration, write.id);
    const isOld = read.ok && same(read.configuration, write.before);
    if (!isOld && !(theirs && sameEntries(theirs, entriesWithout(write.after, write.id))))
      throw changedMeanwhile(
        write.bucket.bucket,
        `the notification configuration of ${write.bucket.bucket}`,
        entriesWithout(write.before, write.id),
        theirs === false ? undefined : theirs,
      );
  }
  return 'waiting';
}

/** Whether two configurations mean the same. */
function same(a: NotificationConfiguration, b: NotificationConfiguration): boolean {
  return a.eventBridge === b.eventBridge && sameEntries(a.entries, b.entries);
}

/**
 * The error for other owners' changes while Tally was writing a document: their entries before and now, unless this version does not know
 * the document's form. It suggests a new plan instead of a command that writes, because what Tally saw is out of date by then.
 */
export function changedMeanwhile(
  bucket: string,
  what: string,
  before: readonly unknown[],
  now: readonly unknown[] | undefined,
): RequestError {
  const command = `tally bucket add ${bucket} --plan`;
  const only = (items: readonly unknown[], others: readonly unknown[]): string => {
    const known = new Set(others.map(canonicalJson));
    return JSON.stringify(items.filter((item) => !known.has(canonicalJson(item))));
  };
  const seen =
    now === undefined
      ? 'this version does not know its current form'
      : `seen before and not after: ${only(before, now)}; seen after and not before: ${only(now, before)}`;
  return new RequestError(
    'connect.changed-meanwhile',
    `someone else changed ${what} while Tally was writing it. Their entries: ${seen}. If an entry was not removed on purpose, its owner must add it again. Then review the current plan with \`${command}\``,
    { before: JSON.stringify(before), now: JSON.stringify(now) ?? 'not known to this version', command },
  );
}
