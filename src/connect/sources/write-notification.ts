/**
 * Writes a bucket's notification configuration. It is one document without a version, so nobody can notice someone else's write between
 * Tally's last read and its PUT. Tally notices all others:
 *
 *   read ──► wait 2 s ──► read again, the same? ──► PUT ──► wait ──► read: ours is there, and all others are as they were
 *              └── different: nothing is written            └── else `connect.changed-meanwhile`, with what was seen
 *
 * One call sends at most one PUT. If S3 refuses it for the moment, the error is thrown, and the caller reads and plans again.
 */
import { canonicalJson } from '../policy.rules.ts';
import { entriesWithout, parseNotification, sameEntries, type NotificationConfiguration } from '../notification.rules.ts';
import type { OwnedBucket } from '../aws/notification.ts';
import type { Tools } from './look.ts';
import { RequestError } from '../../base/request-error.ts';

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

/** `again`: someone changed it meanwhile, and nothing was written. `waiting`: S3 does not show the write yet. */
export async function writeNotification(
  tools: Tools,
  write: NotificationWrite,
  signal?: AbortSignal,
): Promise<'written' | 'again' | 'waiting'> {
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
