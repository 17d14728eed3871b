/**
 * The connected buckets that use parts of Tally's without a record of it, because a person ran the script of `tally bucket emit`.
 * What they use must stay when another bucket is removed.
 */
import { bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import { FaultError } from '../../domain/fault.ts';
import { parseNotification } from '../../domain/provisioning/notification.ts';
import { partsPlace, routedTopic, wiringOf, type Wish, type Rule } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AwsReads } from '../ports/provision.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';
import { ownedBucket } from './observe.ts';
import { partsBeside } from './wishes.ts';

interface UnrecordedDependencies {
  readonly state: StateStore;
  readonly aws: Pick<AwsReads, 'notificationOf' | 'ruleOf' | 'rulesAbout'>;
}

/** `like`: the wish of the bucket that is removed. `recorded`: the buckets that have a record of their connection. */
export type UnrecordedWishes = (like: Wish, recorded: ReadonlySet<string>, signal?: AbortSignal) => Promise<readonly Wish[]>;

/** Creates the function. */
export function createUnrecordedWishes({ state, aws }: UnrecordedDependencies): UnrecordedWishes {
  return async function unrecordedWishes(like, recorded, signal) {
    const buckets = await listAllRecords(state, 'bucket', bucketRecordSchema);
    const found = new Map<string, Wish>();
    for (const record of buckets) {
      if (recorded.has(record.bucket) || record.bucket === like.bucket) continue;
      for (const wish of waysOf(like, record)) {
        // one bucket that uses a part is enough
        const { region, account } = partsPlace(wish);
        const uses = `${wish.source} ${region} ${account} ${wish.topicArn ?? ''}`;
        if (!found.has(uses) && (await isWired(wish, signal))) found.set(uses, wish);
      }
    }
    return [...found.values()];
  };

  async function hasRule(wish: Wish, rule: Rule, signal?: AbortSignal): Promise<boolean> {
    if ((await aws.ruleOf(partsPlace(wish), rule.name, signal)) !== 'absent') return true;
    // a shared rule, or one that a person made for the bucket, uses the same topic, queue and statements
    const made = await aws.rulesAbout(partsPlace(wish), wish.bucket, signal);
    return made.some(({ targets }) => targets.some(({ arn }) => arn === rule.target.arn));
  }

  /** A bucket that may not be read is taken for one that uses them: a part too many costs nothing, and lost events do. */
  async function isWired(wish: Wish, signal?: AbortSignal): Promise<boolean> {
    const { rule, subscription } = wiringOf(wish);
    try {
      if (rule !== undefined) return await hasRule(wish, rule, signal);
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
  const { topicArn: _, minimal: __, partsAccount: ___, ...place } = like;
  const bucketAccount = account ?? like.account;
  // the record of a bucket that was wired by hand names its topic, whosever it is
  const isByTopic = topicArn !== undefined && (source === 'topic' || source === 'notification');
  const routed = source === 'routed' ? routedTopic(topicArn, like.installation) : undefined;
  return {
    ...place,
    bucket,
    region,
    bucketAccount,
    ...partsBeside(bucketAccount, like),
    enrich,
    ...(isByTopic ? { source: 'topic', topicArn } : { source, ...(routed !== undefined && { topicArn: routed }) }),
  };
}
