/**
 * Writes the notification configuration of a bucket. It is one document without a version, so a foreign write between our last
 * read and our PUT cannot be seen; everything else is:
 *
 *   read ──► wait 2 s ──► read again, the same? ──► PUT ──► wait ──► read: ours is there, and all others are as they were
 *              └── different: nothing is written            └── else `connect.changed-meanwhile`, with what restores
 */
import { canonicalJson } from '../../domain/provisioning/canonical.ts';
import {
  canonicalEntry,
  entriesWithout,
  parseNotification,
  sameEntries,
  type NotificationConfiguration,
} from '../../domain/provisioning/notification.ts';
import { restoreCommand } from '../../domain/provisioning/restore.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { OwnedBucket, Provisioner } from '../ports/provision.ts';

/** Two reads that far apart see a change that is under way. */
const CALM_MS = 2_000;
/** S3 usually shows a new configuration within a second; each further look waits twice as long. */
const SHOWN_MS = 1_000;
/** Looks after 1, 3 and 7 s. */
const LOOKS_MAX = 3;
/** S3 validates a destination by the policies that it knows, which may be a minute old. */
const RETRY_MS = 2_000;
const POLICY_MS = 60_000;

export interface NotificationWrite {
  readonly bucket: OwnedBucket;
  readonly before: NotificationConfiguration;
  readonly after: NotificationConfiguration;
  /** The Id of our entry. */
  readonly id: string;
  readonly skipValidation: boolean;
  /** When a policy of the destination was last changed. */
  readonly policyChangedAtMs: number | undefined;
}

/** `again`: it was changed meanwhile, and nothing was written. `waiting`: S3 does not take or show it yet. */
export type WriteNotification = (
  write: NotificationWrite,
  pass: { readonly endsMs: number; readonly signal?: AbortSignal | undefined },
) => Promise<'written' | 'again' | 'waiting'>;

interface Dependencies {
  readonly aws: Pick<Provisioner, 'notificationOf' | 'putNotification'>;
  readonly clock: Clock;
}

type Pass = Parameters<WriteNotification>[1];

/** Creates the function. */
export function createWriteNotification({ aws, clock }: Dependencies): WriteNotification {
  return async function writeNotification(write, pass) {
    await clock.sleep(CALM_MS, pass.signal);
    const again = parseNotification(await aws.notificationOf(write.bucket, pass.signal));
    if (!again.ok || !same(again.configuration, write.before)) return 'again';
    if (!(await put(write, pass))) return 'waiting';
    return verify(write, pass);
  };

  /** Whether S3 took it. What S3 refuses for the moment is sent again until the pass ends. */
  async function put(write: NotificationWrite, { endsMs, signal }: Pass): Promise<boolean> {
    for (;;) {
      try {
        await aws.putNotification(write.bucket, write.after, { skipValidation: write.skipValidation }, signal);
        return true;
      } catch (error) {
        if (!(error instanceof RequestError) || !isTemporary(error, write)) throw error;
        if (clock.monotonicMs() + RETRY_MS > endsMs) return false;
        await clock.sleep(RETRY_MS, signal);
      }
    }
  }

  function isTemporary({ code }: RequestError, { policyChangedAtMs = -Infinity }: NotificationWrite): boolean {
    return code === 'connect.busy' || (code === 'connect.destination' && clock.nowMs() - policyChangedAtMs <= POLICY_MS);
  }

  async function verify(write: NotificationWrite, { signal }: Pass): Promise<'written' | 'waiting'> {
    for (let look = 0; look < LOOKS_MAX; look += 1) {
      await clock.sleep(SHOWN_MS * 2 ** look, signal);
      const read = parseNotification(await aws.notificationOf(write.bucket, signal));
      if (read.ok && same(read.configuration, write.after)) return 'written';
      const theirs = read.ok && entriesWithout(read.configuration, write.id);
      const isOld = read.ok && same(read.configuration, write.before);
      if (!isOld && !(theirs && sameEntries(theirs, entriesWithout(write.before, write.id))))
        throw changedMeanwhile(write, read.ok ? read.configuration : undefined);
    }
    return 'waiting';
  }
}

/** Whether two configurations mean the same. */
function same(a: NotificationConfiguration, b: NotificationConfiguration): boolean {
  return a.eventBridge === b.eventBridge && sameEntries(a.entries, b.entries);
}

function changedMeanwhile({ bucket, before, after, id }: NotificationWrite, now: NotificationConfiguration | undefined): RequestError {
  // what the others had, with ours as it is wanted
  const ours = after.entries.filter((entry) => entry.id === id);
  const restored = { entries: [...entriesWithout(before, id), ...ours], eventBridge: after.eventBridge };
  const command = restoreCommand(bucket, restored);
  return new RequestError(
    'connect.changed-meanwhile',
    `the notifications of ${bucket.bucket} were changed by others while Tally wrote them. Compare both documents, and restore what is missing: ${command}`,
    {
      before: canonicalJson(before.entries.map(canonicalEntry)),
      now: now === undefined ? 'not known to this version' : canonicalJson(now.entries.map(canonicalEntry)),
      command,
    },
  );
}
