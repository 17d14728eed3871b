/** Takes away what Tally made in AWS for a bucket. The record of the connection goes last. */
import { FaultError } from '../../domain/fault.ts';
import { markId } from '../../domain/gaps/dirty.ts';
import { connectionSchema, subscriptionName, type ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { parseArn } from '../../domain/provisioning/names.ts';
import { removalOf, type Kept, type Remains } from '../../domain/provisioning/planning/removal.ts';
import { wiringOf, type Subscription, type Wish } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AwsReads } from '../ports/provision.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, readRecord, removeRecord, updateRecord } from '../records/stored.ts';
import type { Pass, UnderLease } from './loop.ts';
import type { Observe } from './observe.ts';
import { earlierWishes, wishOfConnection } from './wishes.ts';
import { bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import type { WithPorts } from '../ports/ports.ts';
import { refs } from './refs.ts';

interface RemoveDependencies extends WithPorts<'state'> {
  readonly aws: Pick<AwsReads, 'notificationOf'>;
  readonly observe: Observe;
  readonly underLease: UnderLease;
}

interface RemoveParts {
  /**
   * Returns what stays because others have altered it; undefined if Tally made nothing for the bucket. Throws
   * `connect.removing` if a part is left after 20 s, and what AWS refuses: repeat it then.
   */
  all(bucket: string, signal?: AbortSignal): Promise<readonly Kept[] | undefined>;
  /** Forgets what Tally made, and leaves it. Throws `connect.busy`. */
  forget(bucket: string, signal?: AbortSignal): Promise<void>;
  /**
   * Takes away what is left of the sources that the bucket had before, and returns what stays. Undefined: nothing is to be taken
   * away now. As long as its present source is not applied, or its gap is open, the earlier parts may deliver what the present ones do not.
   */
  earlier(bucket: string, signal?: AbortSignal): Promise<readonly Kept[] | undefined>;
}

export function createRemoveParts({ state, aws, observe, underLease }: RemoveDependencies): RemoveParts {
  /** Takes the parts of a wish away, as far as nothing else needs them. */
  async function removeWish(wish: Wish, remains: Remains, pass: Pass, signal?: AbortSignal): Promise<readonly Kept[]> {
    const look = async () => {
      const observed = await observe(wish, signal, { mayBeGone: true });
      return { observed, ...removalOf({ wish, wiring: wiringOf(wish), observed }, remains) };
    };
    const ended = await pass.run({ wish, look, skipValidation: true });
    if ('kept' in ended) return ended.kept;
    throw new RequestError('connect.removing', `AWS still shows parts of ${wish.bucket}: repeat the command`);
  }

  async function removeWishes(wishes: readonly Wish[], remains: Remains, pass: Pass, signal?: AbortSignal): Promise<readonly Kept[]> {
    const kept = new Map<string, Kept>();
    for (const wish of wishes) for (const each of await removeWish(wish, remains, pass, signal)) kept.set(each.name, each);
    return [...kept.values()];
  }

  /** What other buckets need. One that is being removed needs nothing any more. */
  async function remainsOf(connection: ConnectionRecord, signal?: AbortSignal): Promise<Remains> {
    const connections = new Map((await listAllRecords(state, 'connection', connectionSchema)).map((each) => [each.bucket, each]));
    const records = await listAllRecords(state, 'bucket', bucketRecordSchema);
    const others = records.filter(({ bucket }) => bucket !== connection.bucket && connections.get(bucket)?.state !== 'removing');
    const used = new Set<string>();
    for (const wish of [wishOfConnection(connection), ...earlierWishes(connection)]) {
      const { subscription } = wiringOf(wish);
      if (subscription === undefined || wish.topicArn === undefined) continue;
      for (const other of others) {
        const queues = await queuesUsed(subscription, other, connections.get(other.bucket), signal);
        for (const queueArn of queues) used.add(subscription.topicArn).add(subscriptionName({ ...subscription, queueArn }));
      }
    }
    return { made: connection.made, used };
  }

  /** The queues to which a topic that was named sends the bucket's events, or may. */
  async function queuesUsed(
    subscription: Subscription,
    other: BucketRecord,
    connection: ConnectionRecord | undefined,
    signal?: AbortSignal,
  ): Promise<readonly string[]> {
    const { topicArn, queueArn } = subscription;
    if (connection === undefined || connection.byHand === true) {
      const named = connection?.topicArn ?? other.topicArn;
      const isUsed = named === undefined ? await mayUse(subscription, other, signal) : named === topicArn;
      return isUsed ? [queueArn] : [];
    }
    return [connection, ...(connection.earlier ?? [])].flatMap((way) => (way.topicArn === topicArn ? [way.queueArn] : []));
  }

  /** Of what a person wired, the record need not name the topic. */
  async function mayUse(
    { topicArn, queueArn }: Subscription,
    { bucket, region, account, source }: BucketRecord,
    signal?: AbortSignal,
  ): Promise<boolean> {
    if (source !== 'notification') return source === 'routed';
    const owner = account ?? parseArn(queueArn)?.account ?? '';
    try {
      const xml = await aws.notificationOf({ bucket, region, account: owner }, signal);
      return xml.includes(topicArn);
    } catch (error) {
      if (error instanceof FaultError && error.code === 'bucket.missing') return false;
      // one that may not be read is taken for one that uses it: a subscription too many costs nothing, and lost events do
      if (error instanceof RequestError && error.code === 'connect.denied') return true;
      throw error;
    }
  }

  /** Who needs what is shared must not change meanwhile. */
  async function underPass<Result>(
    connection: ConnectionRecord,
    signal: AbortSignal | undefined,
    work: (pass: Pass) => Promise<Result>,
  ): Promise<Result> {
    const { bucket } = connection;
    const done = await underLease({ bucket, wishes: [connection, ...earlierWishes(connection)] }, signal, work);
    if (done === 'held') throw new RequestError('connect.busy', 'another process changes connections now: repeat the request');
    return done;
  }

  return {
    async all(bucket, signal) {
      const ref = refs.connection(bucket);
      const known = await readRecord(state, ref, signal);
      if (known === undefined) return undefined;
      return underPass(known, signal, async (pass) => {
        const connection = await updateRecord(state, ref, (current) => current && { ...current, state: 'removing' as const });
        if (connection === undefined) return undefined;
        const remains = await remainsOf(connection, signal);
        const kept = await removeWishes([wishOfConnection(connection), ...earlierWishes(connection)], remains, pass, signal);
        await removeRecord(state, ref.id);
        return kept;
      });
    },
    async forget(bucket, signal) {
      const ref = refs.connection(bucket);
      const known = await readRecord(state, ref, signal);
      if (known !== undefined) await underPass(known, signal, () => removeRecord(state, ref.id));
    },
    async earlier(bucket, signal) {
      const known = await settledEarlier(state, bucket, signal);
      if (known === undefined) return undefined;
      return underPass(known, signal, async (pass) => {
        const connection = await settledEarlier(state, bucket, signal);
        if (connection === undefined) return undefined;
        const still = wishOfConnection(connection);
        const kept = await removeWishes(earlierWishes(connection), { ...(await remainsOf(connection, signal)), still }, pass, signal);
        const { earlier: _, ...rest } = connection;
        // what others make in place of what is gone is theirs
        const made = connection.made.filter((name) => isOfPresent(name, still));
        await updateRecord(state, refs.connection(bucket), () => ({ ...rest, made }));
        return kept;
      });
    },
  };
}

function isOfPresent(name: string, still: Wish): boolean {
  const { subscription, selector } = wiringOf(still);
  return (subscription !== undefined && name === subscriptionName(subscription)) || (selector !== undefined && name === still.trailArn);
}

/** The connection, if it has earlier parts that may go. */
async function settledEarlier(state: StateStore, bucket: string, signal?: AbortSignal): Promise<ConnectionRecord | undefined> {
  const connection = await readRecord(state, refs.connection(bucket), signal);
  if (connection?.state !== 'applied' || (connection.earlier ?? []).length === 0) return undefined;
  const mark = await readRecord(state, refs.gap(markId(bucket)), signal);
  return mark?.reasons.some(({ kind }) => kind === 'connection') === true ? undefined : connection;
}
