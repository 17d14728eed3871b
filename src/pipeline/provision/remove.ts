/**
 * Takes away what Tally made in AWS for a bucket. Like an apply it reads AWS, takes the next part away, and so on until nothing
 * is left, so that it can be repeated after any failure. The record of the connection goes last.
 */
import { connectionSchema, type ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { prefixOf } from '../../domain/provisioning/names.ts';
import { removalOf, type Kept } from '../../domain/provisioning/removal.ts';
import { wiringOf, type Wish } from '../../domain/provisioning/wiring.ts';
import { FaultError } from '../../domain/fault.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { KeepLock, UnderLock } from './lock.ts';
import type { createMakeParts } from './make.ts';
import { ownedBucket, type Observe } from './observe.ts';
import { wishOfConnection } from './wishes.ts';
import type { WriteNotification } from './write-notification.ts';

const PASS_MS = 20_000;
/** A connection has at most six parts. Each round takes one away. */
const ROUNDS_MAX = 20;

interface RemoveDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly observe: Observe;
  readonly underLock: UnderLock;
  readonly makeParts: ReturnType<typeof createMakeParts>;
  readonly writeNotification: WriteNotification;
}

/**
 * Returns what stays because others have altered it; undefined if Tally made nothing for the bucket. Throws `connect.removing`
 * if a part is left after 20 s, and what AWS refuses: repeat it then.
 */
export type RemoveParts = (bucket: string, signal?: AbortSignal) => Promise<readonly Kept[] | undefined>;

/** Creates the function. */
export function createRemoveParts({ state, clock, observe, underLock, makeParts, writeNotification }: RemoveDependencies): RemoveParts {
  return async function removeParts(bucket, signal) {
    if ((await readRecord(state, refs.connection(bucket), signal)) === undefined) return undefined;
    const endsMs = clock.monotonicMs() + PASS_MS;
    const done = await underLock(async (keep) => {
      const connection = await updateRecord(
        state,
        refs.connection(bucket),
        (current) => current && { ...current, state: 'removing' as const },
      );
      return connection && removeAll(connection, { keep, endsMs, signal });
    });
    if (done === 'held') throw new RequestError('connect.busy', 'another process changes connections now: repeat the request');
    return done;
  };

  async function removeAll(
    connection: ConnectionRecord,
    at: { readonly keep: KeepLock; readonly endsMs: number; readonly signal: AbortSignal | undefined },
  ): Promise<readonly Kept[]> {
    const { bucket } = connection;
    const wish = wishOfConnection(connection);
    const others = await otherWishes(bucket);
    for (let round = 0; round < ROUNDS_MAX && clock.monotonicMs() < at.endsMs; round += 1) {
      const observed = await observe(wish, at.signal, { mayBeGone: true });
      const { removals, kept } = removalOf({ wish, wiring: wiringOf(wish), observed }, others);
      const [next] = removals;
      if (next === undefined) {
        await removeRecord(state, refs.connection(bucket).id);
        return kept;
      }
      await at.keep();
      if (next.part !== 'notification') await makeParts.remove(wish, next, at.signal);
      else {
        const { before, after } = next;
        const write = {
          bucket: ownedBucket(wish),
          before,
          after,
          id: prefixOf(wish.installation),
          // a broken destination of others must not keep ours
          skipValidation: true,
          policyChangedAtMs: undefined,
        };
        await writeNotification(write, at).catch(unlessGone);
      }
    }
    throw new RequestError('connect.removing', `AWS still shows parts of ${bucket}: repeat tally bucket remove ${bucket}`);
  }

  /** What the other connections need. One that is being removed needs nothing any more. */
  async function otherWishes(bucket: string): Promise<readonly Wish[]> {
    const all = await listAllRecords(state, 'connection', connectionSchema);
    return all.filter((other) => other.bucket !== bucket && other.state !== 'removing').map(wishOfConnection);
  }
}

/** A bucket that is gone has no configuration. */
function unlessGone(error: unknown): void {
  if (!(error instanceof FaultError) || error.code !== 'bucket.missing') throw error;
}
