/**
 * Takes away what Tally made in AWS for a bucket. Like an apply it reads AWS, takes the next part away, and so on until nothing
 * is left, so that it can be repeated after any failure. The record of the connection goes last.
 */
import { FaultError } from '../../domain/fault.ts';
import { markId } from '../../domain/gaps/dirty.ts';
import { connectionSchema, madeSubscription, subscriptionName, type ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { markOf } from '../../domain/provisioning/names.ts';
import { removalOf, type Kept, type Made, type Removal } from '../../domain/provisioning/removal.ts';
import { wiringOf, type Wish, routedTopic } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AwsReads } from '../ports/provision.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { Lock, UnderLock } from './lock.ts';
import type { createMakeParts } from './make.ts';
import { ownedBucket, type Observe } from './observe.ts';
import { createOutwait } from './patience.ts';
import { earlierWishes, wishOfConnection } from './wishes.ts';
import type { WriteNotification } from './write-notification.ts';
import { bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import { parseNotification } from '../../domain/provisioning/notification.ts';
import type { WithPorts } from '../ports/ports.ts';
import { omit } from '../../domain/defined.ts';

const PASS_MS = 20_000;
/** A wish has at most eight parts. Each round takes one away. */
const ROUNDS_MAX = 20;

interface RemoveDependencies extends WithPorts<'state' | 'clock'> {
  readonly aws: AwsReads;
  readonly observe: Observe;
  readonly underLock: UnderLock;
  readonly makeParts: ReturnType<typeof createMakeParts>;
  readonly writeNotification: WriteNotification;
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

/** What a removal leaves alone. */
interface Remains {
  readonly others: readonly Wish[];
  readonly made: Made;
}

interface Pass {
  readonly keep: () => ReturnType<Lock['keep']>;
  readonly endsMs: number;
  readonly signal: AbortSignal | undefined;
}

export function createRemoveParts({
  state,
  aws,
  clock,
  observe,
  underLock,
  makeParts,
  writeNotification,
}: RemoveDependencies): RemoveParts {
  const unrecordedWishes = createUnrecordedWishes({ state, aws });

  /** Takes the parts of a wish away, as far as none of the others needs them. */
  async function removeWish(wish: Wish, { others, made }: Remains, at: Pass): Promise<readonly Kept[]> {
    const outwait = createOutwait(clock, at);
    for (let round = 0; round < ROUNDS_MAX && clock.monotonicMs() < at.endsMs; round += 1) {
      const observed = await observe(wish, at.signal, { mayBeGone: true });
      const { removals, kept } = removalOf({ wish, wiring: wiringOf(wish), observed }, others, made);
      const [next] = removals;
      if (next === undefined) return kept;
      await at.keep();
      try {
        await removePart(wish, next, at);
      } catch (error) {
        if (!(await outwait(error))) break;
      }
    }
    throw new RequestError('connect.removing', `AWS still shows parts of ${wish.bucket}: repeat the command`);
  }

  async function removePart(wish: Wish, removal: Removal, at: Pass): Promise<void> {
    if (removal.part !== 'notification') return makeParts.remove(wish, removal, at.signal);
    const { before, after } = removal;
    // a broken destination of others must not keep ours
    const write = { bucket: ownedBucket(wish), before, after, id: markOf(wish), skipValidation: true };
    await writeNotification(write, at.signal).catch(unlessGone);
  }

  /**
   * Takes the parts of all wishes away. Wishes that share a topic each see the subscription of the other one until it is gone,
   * so what stays is what a second round leaves.
   */
  async function removeWishes(wishes: readonly Wish[], remains: Remains, at: Pass): Promise<readonly Kept[]> {
    if (wishes.length > 1) for (const wish of wishes) await removeWish(wish, remains, at);
    const kept = new Map<string, Kept>();
    for (const wish of wishes) for (const each of await removeWish(wish, remains, at)) kept.set(each.name, each);
    return [...kept.values()];
  }

  /** What the other connections need, and what is left of them. One that is being removed needs nothing any more. */
  async function remainsOf(connection: ConnectionRecord, signal?: AbortSignal): Promise<Remains> {
    const all = await listAllRecords(state, 'connection', connectionSchema);
    const others = all.filter((other) => other.bucket !== connection.bucket && other.state !== 'removing');
    const wishes = others.flatMap((other) => [wishOfConnection(other), ...earlierWishes(other)]);
    const recorded = new Set(all.map(({ bucket }) => bucket));
    const unrecorded: Wish[] = [];
    for (const wish of [wishOfConnection(connection), ...earlierWishes(connection)])
      unrecorded.push(...(await unrecordedWishes(wish, recorded, signal)));
    return {
      others: [...wishes, ...unrecorded],
      made: {
        subscription: (subscription, arn) =>
          [connection, ...all].some((each) => madeSubscription(each, subscriptionName(subscription), arn)),
        selector: (trailArn) => connection.parts.some(({ kind, arn }) => kind === 'trail' && arn === trailArn),
      },
    };
  }

  /** The shared lease is held for the whole pass: who needs what is shared must not change meanwhile. */
  async function underPass<Result>(bucket: string, signal: AbortSignal | undefined, work: (at: Pass) => Promise<Result>): Promise<Result> {
    const endsMs = clock.monotonicMs() + PASS_MS;
    const done = await underLock(bucket, { endsMs, signal }, (lock) =>
      lock.shared(() => work({ keep: () => lock.keep(), endsMs, signal })),
    );
    if (done === 'held') throw new RequestError('connect.busy', 'another process changes connections now: repeat the request');
    return done;
  }

  return {
    async all(bucket, signal) {
      const ref = refs.connection(bucket);
      if ((await readRecord(state, ref, signal)) === undefined) return undefined;
      return underPass(bucket, signal, async (at) => {
        const connection = await updateRecord(state, ref, (current) => current && { ...current, state: 'removing' as const });
        if (connection === undefined) return undefined;
        const remains = await remainsOf(connection, signal);
        const kept = await removeWishes([wishOfConnection(connection), ...earlierWishes(connection)], remains, at);
        await removeRecord(state, ref.id);
        return kept;
      });
    },
    async forget(bucket, signal) {
      const ref = refs.connection(bucket);
      if ((await readRecord(state, ref, signal)) !== undefined) await underPass(bucket, signal, () => removeRecord(state, ref.id));
    },
    async earlier(bucket, signal) {
      if ((await settledEarlier(state, bucket, signal)) === undefined) return undefined;
      return underPass(bucket, signal, async (at) => {
        const connection = await settledEarlier(state, bucket, signal);
        if (connection === undefined) return undefined;
        const { others, made } = await remainsOf(connection, signal);
        const remains = { others: [...others, wishOfConnection(connection)], made };
        const kept = await removeWishes(earlierWishes(connection), remains, at);
        const { earlier: _, ...rest } = connection;
        const parts = withoutGone(connection, remains.others);
        await updateRecord(state, refs.connection(bucket), () => ({ ...rest, parts }));
        return kept;
      });
    },
  };
}

/** The parts without what was taken away: what others make in its place later is theirs. */
function withoutGone(connection: ConnectionRecord, others: readonly Wish[]): ConnectionRecord['parts'] {
  const namesOf = (wishes: readonly Wish[]): readonly string[] =>
    wishes.flatMap((wish) => wiringOf(wish).subscription ?? []).map(subscriptionName);
  const needed = new Set(namesOf(others));
  const gone = new Set(namesOf(earlierWishes(connection)).filter((name) => !needed.has(name)));
  return connection.parts.filter(
    ({ kind, arn }) => !(kind === 'subscription' && gone.has(arn)) && !(kind === 'trail' && connection.source !== 'routed'),
  );
}

/** The connection, if it has earlier parts that may go. */
async function settledEarlier(state: StateStore, bucket: string, signal?: AbortSignal): Promise<ConnectionRecord | undefined> {
  const connection = await readRecord(state, refs.connection(bucket), signal);
  if (connection?.state !== 'applied' || (connection.earlier ?? []).length === 0) return undefined;
  const mark = await readRecord(state, refs.gap(markId(bucket)), signal);
  return mark?.reasons.some(({ kind }) => kind === 'connection') === true ? undefined : connection;
}

/** A bucket that is gone has no configuration. */
function unlessGone(error: unknown): void {
  if (!(error instanceof FaultError) || error.code !== 'bucket.missing') throw error;
}

/**
 * The connected buckets that use parts of Tally's without a record of it, because a person or Terraform wired them.
 * What they use must stay when another bucket is removed.
 */

interface UnrecordedDependencies {
  readonly state: StateStore;
  readonly aws: Pick<AwsReads, 'notificationOf'>;
}

/** `like`: the wish of the bucket that is removed. `recorded`: the buckets that have a record of their connection. */
type UnrecordedWishes = (like: Wish, recorded: ReadonlySet<string>, signal?: AbortSignal) => Promise<readonly Wish[]>;

function createUnrecordedWishes({ state, aws }: UnrecordedDependencies): UnrecordedWishes {
  return async function unrecordedWishes(like, recorded, signal) {
    const buckets = await listAllRecords(state, 'bucket', bucketRecordSchema);
    const found = new Map<string, Wish>();
    for (const record of buckets) {
      if (recorded.has(record.bucket) || record.bucket === like.bucket) continue;
      for (const wish of waysOf(like, record)) {
        // one bucket that uses a part is enough
        const uses = `${wish.source} ${wish.region} ${wish.topicArn ?? ''}`;
        if (!found.has(uses) && (await isWired(wish, signal))) found.set(uses, wish);
      }
    }
    return [...found.values()];
  };

  /** A bucket that may not be read is taken for one that uses them: a part too many costs nothing, and lost events do. */
  async function isWired(wish: Wish, signal?: AbortSignal): Promise<boolean> {
    const { rule, subscription } = wiringOf(wish);
    // a rule that a person made has any name
    if (rule !== undefined) return true;
    try {
      const xml = await aws.notificationOf(ownedBucket(wish), signal);
      const read = parseNotification(xml);
      if (!read.ok) return xml.includes(subscription?.topicArn ?? '');
      return read.configuration.entries.some(({ arn }) => arn === subscription?.topicArn);
    } catch (error) {
      if (error instanceof FaultError && error.code === 'bucket.missing') return false;
      if (error instanceof RequestError && error.code === 'connect.denied') return true;
      throw error;
    }
  }
}

/** How the bucket may be wired: as its record says, and by the topic of the bucket that is removed, which a record need not name. */
function waysOf(like: Wish, record: BucketRecord): readonly Wish[] {
  const own = wishLike(like, record);
  const { topicArn } = wiringOf(like).subscription ?? {};
  switch (record.source) {
    case 'notification':
    case 'topic':
      return topicArn === undefined ? [own] : [own, { ...own, source: 'topic', topicArn }];
    case 'routed':
      return like.source === 'routed' && like.topicArn !== undefined ? [own, { ...own, topicArn: like.topicArn }] : [own];
    case 'eventbridge':
      return [own];
  }
}

/** The wish by which the bucket would have been connected. Queues and installation are those of the other one. */
function wishLike(like: Wish, { bucket, region, account, source, topicArn, enrich }: BucketRecord): Wish {
  const bucketAccount = account ?? like.account;
  // the record of a bucket that was wired by hand names its topic, whosever it is
  const isByTopic = topicArn !== undefined && (source === 'topic' || source === 'notification');
  const routed = source === 'routed' ? routedTopic(topicArn, like.installation) : undefined;
  return {
    ...omit(like, 'topicArn', 'byHand'),
    bucket,
    region,
    bucketAccount,
    enrich,
    ...(isByTopic ? { source: 'topic', topicArn } : { source, ...(routed !== undefined && { topicArn: routed }) }),
  };
}
