/**
 * Writes the notification configuration of a bucket. It is one document without a version, so a foreign write between our last
 * read and our PUT cannot be seen; everything else is:
 *
 *   read ──► wait 2 s ──► read again, the same? ──► PUT ──► wait ──► read: ours is there, and all others are as they were
 *              └── different: nothing is written            └── else `connect.changed-meanwhile`, with what was seen
 *
 * One call sends one PUT at most. What S3 refuses for the moment is thrown, and the caller begins with its own read and plan.
 */
import {
  entryText,
  canonicalEntry,
  entriesWithout,
  parseNotification,
  sameEntries,
  type NotificationConfiguration,
  type NotificationEntry,
  seenText,
} from '../notification.rules.ts';
import type { Clock } from '../../process/clock.ts';
import type { OwnedBucket } from '../aws/notification.ts';
import type { Provisioner } from '../aws/provisioner.ts';
import { RequestError } from '../../base/request-error.ts';

/** Two reads that far apart see a change that is under way. */
const CALM_MS = 2_000;
/** S3 usually shows a new configuration within a second; each further look waits twice as long. */
const SHOWN_MS = 1_000;
/** Looks after 1, 3 and 7 s. */
const LOOKS_MAX = 3;

interface NotificationWrite {
  readonly bucket: OwnedBucket;
  readonly before: NotificationConfiguration;
  readonly after: NotificationConfiguration;
  /** The Id of our entry. */
  readonly id: string;
  readonly skipValidation: boolean;
}

/** `again`: it was changed meanwhile, and nothing was written. `waiting`: S3 does not show it yet. */
export type WriteNotification = (write: NotificationWrite, signal?: AbortSignal) => Promise<'written' | 'again' | 'waiting'>;

interface Dependencies {
  readonly aws: Pick<Provisioner, 'notificationOf' | 'putNotification'>;
  readonly clock: Clock;
}

export function createWriteNotification({ aws, clock }: Dependencies): WriteNotification {
  return async function writeNotification(write, signal) {
    await clock.sleep(CALM_MS, signal);
    const again = parseNotification(await aws.notificationOf(write.bucket, signal));
    if (!again.ok || !same(again.configuration, write.before)) return 'again';
    await aws.putNotification(write.bucket, write.after, { skipValidation: write.skipValidation }, signal);
    return verify(write, signal);
  };

  async function verify(write: NotificationWrite, signal?: AbortSignal): Promise<'written' | 'waiting'> {
    for (let look = 0; look < LOOKS_MAX; look += 1) {
      await clock.sleep(SHOWN_MS * 2 ** look, signal);
      const read = parseNotification(await aws.notificationOf(write.bucket, signal));
      if (read.ok && same(read.configuration, write.after)) return 'written';
      const theirs = read.ok && entriesWithout(read.configuration, write.id);
      const isOld = read.ok && same(read.configuration, write.before);
      if (!isOld && !(theirs && sameEntries(theirs, entriesWithout(write.after, write.id))))
        throw changedMeanwhile<NotificationEntry>({
          bucket: write.bucket.bucket,
          what: `the notification configuration of ${write.bucket.bucket}`,
          before: entriesWithout(write.before, write.id),
          now: theirs === false ? undefined : theirs,
          same: canonicalEntry,
          name: entryText,
        });
    }
    return 'waiting';
  }
}

/** Whether two configurations mean the same. */
function same(a: NotificationConfiguration, b: NotificationConfiguration): boolean {
  return a.eventBridge === b.eventBridge && sameEntries(a.entries, b.entries);
}

/** What others changed while Tally wrote. */
interface Seen<Item> {
  readonly bucket: string;
  /** What was changed, as a sentence begins with it. */
  readonly what: string;
  /** What others had in it. */
  readonly before: readonly Item[];
  /** Undefined: this version does not know its form. */
  readonly now: readonly Item[] | undefined;
  readonly same: (item: Item) => string;
  readonly name: (item: Item) => string;
}

/** Creates the error. Its text names what was seen, and leads to a new plan: it prints nothing that writes. */
export function changedMeanwhile<Item>({ bucket, what, before, now, ...of }: Seen<Item>): RequestError {
  const command = `tally bucket add ${bucket} --plan`;
  const seen = now === undefined ? 'this version does not know its current form' : seenText(before, now, of);
  return new RequestError(
    'connect.changed-meanwhile',
    `someone else changed ${what} while Tally was writing it. Their entries: ${seen}. If an entry was not removed on purpose, its owner must add it again. Then review the current plan with \`${command}\``,
    { before: before.map(of.name).join(', '), now: now?.map(of.name).join(', ') ?? 'not known to this version', command },
  );
}
