/** What a bucket should have in AWS: the request, completed by the bucket's record and by the bucket queue's own attributes. */
import { defined } from '../base/defined.ts';
import { docsPage } from '../base/doc-pages.ts';
import {
  DIRECTORY_BUCKET,
  isDirectoryBucket,
  refuseTopic,
  usableTopic,
  type BucketRecord,
  type BucketSource,
  type ConnectionSpec,
} from '../records/bucket.ts';
import { isTallysTopic, NOBODY, ownerIn, parseArn, prefixOf } from './names.rules.ts';
import type { ConnectionRequest } from './plan.rules.ts';
import { deadLetterIn } from './shared.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { WithPorts } from '../store/store.ts';
import { readRecord, refs } from '../store/stored.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import type { Provisioner } from './aws/provisioner.ts';

export interface ConnectionParts extends WithPorts<'state' | 'clock'> {
  readonly aws: Provisioner;
  readonly storage: Pick<ObjectStorage, 'regionOf' | 'versioningOf' | 'firstKey' | 'readVersion' | 'readTags'>;
  /** The bucket queues of the settings: buckets are connected to the first. */
  readonly queueUrls: readonly string[];
  readonly isEmbedded: boolean;
  /** The server of the queues has no SNS and no EventBridge. */
  readonly hasQueuesAlone?: boolean;
  readonly trailArn?: string | undefined;
  readonly trailBucket?: string | undefined;
}

interface Requested {
  readonly spec: ConnectionSpec;
  readonly record: BucketRecord | undefined;
}

/**
 * With `queueArn`, the bucket stays at this queue if it is one of the settings. Throws `connect.embedded`, `connect.blocked`,
 * `request.invalid` for what cannot be, and what reading the queue and the region throws.
 */
export async function requested(
  parts: ConnectionParts,
  request: ConnectionRequest,
  signal?: AbortSignal,
  queueArn?: string,
): Promise<Requested> {
  const { state, storage, trailArn, trailBucket } = parts;
  const { bucket } = request;
  if (isDirectoryBucket(bucket)) throw new RequestError('connect.blocked', `${bucket} ${DIRECTORY_BUCKET}`);
  const record = await readRecord(state, refs.bucket(bucket), signal);
  const queue = await bucketQueue(parts, queueArn, signal);
  const choice = choiceOf(request, record, queue.installation);
  const spec = {
    bucket,
    ...queue,
    region: record === undefined ? await storage.regionOf(bucket, signal) : record.region,
    bucketAccount: request.bucket_account ?? accountOf(record) ?? queue.account,
    ...choice,
    ...(isByHand(request, choice.source, record) && { byHand: true }),
    ...(choice.source === 'routed' && (trailArn === undefined ? defined({ trailBucket }) : { trailArn })),
  };
  refuseQueuesAlone(parts, spec);
  return { spec, record };
}

/** The bucket queue, its dead-letter queue, its place, and its owner by its tags. */
async function bucketQueue({ aws, queueUrls, isEmbedded }: ConnectionParts, wanted: string | undefined, signal?: AbortSignal) {
  if (isEmbedded) throw new RequestError('connect.embedded', 'the embedded bucket sends its events itself, so there is nothing to connect');
  const [first, ...more] = queueUrls;
  if (first === undefined)
    throw new RequestError('connect.blocked', 'this process knows no bucket queue to connect to: set TALLY_QUEUE_URL');
  let url = first;
  let queue = await aws.queueAt(first, signal);
  for (const other of wanted === undefined || queue.arn === wanted ? [] : more) {
    const found = await aws.queueAt(other, signal);
    if (found.arn === wanted) [url, queue] = [other, found];
  }
  const { arn: queueArn, attributes } = queue;
  const { partition, account } = parseArn(queueArn) ?? { partition: '', account: '' };
  const letters = deadLetterIn(attributes);
  const owner = ownerIn(await aws.queueTags(url, signal)) ?? NOBODY;
  return { partition, account, ...owner, queueArn, ...(letters !== queueArn && defined({ deadLetterArn: letters })) };
}

function refuseQueuesAlone({ hasQueuesAlone }: ConnectionParts, { bucket, source, byHand }: ConnectionSpec): void {
  if (hasQueuesAlone !== true || byHand === true) return;
  throw new RequestError(
    'connect.blocked',
    `the bucket queue's server has neither SNS nor EventBridge, so no ${source} can deliver ${bucket}'s events. Have the store post them: \`tally bucket add ${bucket} --source webhook\`. If it sends to the queue by itself, add \`--wired-by-hand\`; if SNS is there, set AWS_ENDPOINT_URL_SNS`,
  );
}

/** Tally has no credentials for another account: that account's owner must send the events to a topic and let Tally read the bucket. */
export function refuseOtherAccount({ bucket, bucketAccount, account, source }: ConnectionSpec): void {
  if (bucketAccount === account || source === 'topic' || source === 'webhook') return;
  throw new RequestError(
    'connect.blocked',
    `${bucket} belongs to the account ${bucketAccount}, and the bucket queue to ${account}. Have its owner send the events to a topic there, and connect it with \`tally bucket add ${bucket} --bucket-account ${bucketAccount} --source topic --topic ARN\` (${docsPage('docs/guides/connect.md#another-region-or-account')})`,
  );
}

function accountOf(record: BucketRecord | undefined): string | undefined {
  return record?.connection?.bucketAccount ?? record?.account;
}

/** A person's wiring stays theirs until a request says otherwise or the source changes. A webhook is set up in the store. */
function isByHand({ wired_by_hand: asked }: ConnectionRequest, source: BucketSource, record: BucketRecord | undefined): boolean {
  const { connection } = record ?? {};
  return source === 'webhook' || (asked ?? (connection?.source === source && connection.byHand === true));
}

type Choice = Pick<ConnectionSpec, 'source' | 'topicArn' | 'enrich'>;

function choiceOf(request: ConnectionRequest, record: BucketRecord | undefined, installation: string): Choice {
  const { source = record?.source ?? 'notification', enrich = record?.enrich ?? 'none' } = request;
  refuseTopic(source, request.topic_arn);
  // a topic belongs to its source
  const named = request.topic_arn ?? (record?.source === source ? record.topicArn : undefined);
  return { source, enrich, ...defined({ topicArn: topicOf(source, named, installation) }) };
}

function topicOf(source: BucketSource, named: string | undefined, installation: string): string | undefined {
  // a routed bucket's record may name Tally's own topic
  const isOwn = named === undefined || parseArn(named)?.resource === `${prefixOf(installation)}-routed`;
  return source === 'topic' || (source === 'routed' && !isOwn) ? foreignTopic(named) : undefined;
}

/** A named topic must not be Tally's own: those are shared, and the rule's statement there would replace S3's, which has the same Sid. */
function foreignTopic(topicArn: string | undefined): string {
  const usable = usableTopic(topicArn);
  if (!isTallysTopic(usable)) return usable;
  throw new RequestError('request.invalid', 'topic_arn: this topic belongs to Tally itself or to another registry: name your own topic');
}
