/** What a bucket is to have in AWS: what a request says, completed by what is stored and by what the bucket queue says about itself. */
import { defined, omit } from '../base/defined.ts';
import {
  DIRECTORY_BUCKET,
  isDirectoryBucket,
  refuseTopic,
  usableTopic,
  type BucketRecord,
  type BucketSource,
  type EnrichMode,
} from '../records/bucket.ts';
import { isBucketName } from '../base/bucket-name.ts';
import type { ConnectionRecord, ConnectionSpec } from './connection.rules.ts';
import { NOBODY, ownerIn, parseArn, prefixOf, type Owner } from './names.rules.ts';
import type { ConnectionRequest } from './plan.rules.ts';
import { deadLetterIn } from './shared.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { WithPorts } from '../store/store.ts';
import { readRecord } from '../store/stored.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import type { Provisioner } from './aws/provisioner.ts';
import { refs } from './refs.ts';

export interface ProvisionDependencies extends WithPorts<'state' | 'clock'> {
  readonly aws: Provisioner;
  readonly storage: Pick<ObjectStorage, 'regionOf' | 'versioningOf' | 'firstKey' | 'readVersion' | 'readTags'>;
  /** The bucket queue; absent if the settings name none. */
  readonly queueUrl: string | undefined;
  /** The other bucket queues of the settings. */
  readonly moreQueueUrls?: readonly string[];
  readonly isEmbedded: boolean;
  /** The server of the queues has no SNS and no EventBridge. */
  readonly hasQueuesAlone?: boolean;
  readonly trailArn?: string | undefined;
  readonly trailBucket?: string | undefined;
}

interface Requested {
  readonly spec: ConnectionSpec;
  readonly record: BucketRecord | undefined;
  readonly connection: ConnectionRecord | undefined;
}

/** Throws `connect.embedded`, `connect.no-queue`, `request.invalid` for what cannot be, and what reading the queue and the region throws. */
export async function requested(parts: ProvisionDependencies, request: ConnectionRequest, signal?: AbortSignal): Promise<Requested> {
  const { state, storage } = parts;
  const { bucket } = request;
  refuseName(bucket);
  const record = await readRecord(state, refs.bucket(bucket), signal);
  const connection = await readRecord(state, refs.connection(bucket), signal);
  const { place, owner, ...queues } = await bucketQueue(parts, signal);
  const region = record?.region ?? (await storage.regionOf(bucket, signal));
  const choice = choiceOf(request, record, owner.installation);
  const byHand = isByHand(request, choice, connection);
  const bucketAccount = request.bucket_account ?? connection?.bucketAccount ?? record?.account ?? place.account;
  const spec = {
    bucket,
    ...place,
    region,
    bucketAccount,
    ...owner,
    ...choice,
    ...(byHand && { byHand: true }),
    ...queues,
    ...(choice.source === 'routed' && trailNames(parts)),
  };
  refuseQueuesAlone(parts, spec);
  return { spec, record, connection };
}

/** The bucket queue, its dead-letter queue, and where they are. */
async function bucketQueue({ aws, queueUrl, isEmbedded }: ProvisionDependencies, signal?: AbortSignal) {
  if (isEmbedded) {
    throw new RequestError('connect.embedded', 'the embedded bucket sends its events by itself, so there is nothing to connect');
  }
  if (queueUrl === undefined) {
    throw new RequestError('connect.no-queue', 'TALLY_QUEUE_URL is not set here, so there is no bucket queue to connect to');
  }
  const { arn: queueArn, deadLetterArn, owner } = await readBucketQueue(aws, queueUrl, signal);
  const { partition, account } = parseArn(queueArn) ?? { partition: '', account: '' };
  return { place: { partition, account }, owner, queueArn, ...defined({ deadLetterArn }) };
}

function refuseQueuesAlone({ hasQueuesAlone }: ProvisionDependencies, { bucket, source, byHand }: ConnectionSpec): void {
  if (hasQueuesAlone !== true || byHand === true) return;
  throw new RequestError(
    'connect.blocked',
    `the server of the bucket queue has neither SNS nor EventBridge, so no ${source} can deliver events of ${bucket}. Have the store post them: \`tally bucket add ${bucket} --source webhook\`. If it sends to the queue by itself, add \`--wired-by-hand\`; if SNS is there, set AWS_ENDPOINT_URL_SNS`,
  );
}

function refuseName(bucket: string): void {
  if (!isBucketName(bucket)) throw new RequestError('bucket.not-connected', 'this is not a valid bucket name');
  if (isDirectoryBucket(bucket)) throw new RequestError('connect.blocked', `${bucket} ${DIRECTORY_BUCKET}`);
}

function trailNames({ trailArn, trailBucket }: ProvisionDependencies): Pick<ConnectionSpec, 'trailArn' | 'trailBucket'> {
  return { ...(trailArn !== undefined && { trailArn }), ...(trailBucket !== undefined && trailArn === undefined && { trailBucket }) };
}

/** What a person has wired stays theirs until a request says otherwise, or the source changes. A webhook is set up at the store. */
function isByHand({ wired_by_hand: asked }: ConnectionRequest, { source }: Choice, connection: ConnectionRecord | undefined): boolean {
  return source === 'webhook' || (asked ?? (connection?.source === source && connection.byHand === true));
}

type Choice = Pick<ConnectionSpec, 'source' | 'topicArn' | 'enrich'>;

function choiceOf(request: ConnectionRequest, record: BucketRecord | undefined, installation: string): Choice {
  const source = request.source ?? record?.source ?? 'notification';
  refuseTopic(source, request.topic_arn);
  const named = request.topic_arn ?? storedTopic(record, source);
  // the record of a routed bucket names the topic of Tally too
  const isOwn = named === undefined || nameOfTopic(named) === `${prefixOf(installation)}-routed`;
  const topic = source === 'topic' || (source === 'routed' && !isOwn) ? { topicArn: foreignTopic(named) } : {};
  return { source, enrich: enrichOf(request, record), ...topic };
}

function enrichOf({ enrich }: ConnectionRequest, record: BucketRecord | undefined): EnrichMode {
  return enrich ?? record?.enrich ?? 'none';
}

/** A topic belongs to its source. */
function storedTopic(record: BucketRecord | undefined, source: BucketSource): string | undefined {
  return record?.source === source ? record.topicArn : undefined;
}

const OF_TALLY = /^tally-[0-9a-f]{8}-(?:events|routed)$/;

function nameOfTopic(topicArn: string | undefined): string {
  return parseArn(topicArn ?? '')?.resource ?? '';
}

/** Tally's own are shared: what is the bucket's own at a topic goes with the bucket, and a statement there has the Sid that the rule's would have. */
function foreignTopic(topicArn: string | undefined): string {
  const usable = usableTopic(topicArn);
  if (!OF_TALLY.test(nameOfTopic(usable))) return usable;
  throw new RequestError('request.invalid', 'topic_arn: this topic belongs to Tally itself or to another registry: name your own topic');
}

/** The spec with another bucket queue. */
export function atQueue(spec: ConnectionSpec, { arn, deadLetterArn, owner }: BucketQueue): ConnectionSpec {
  const { partition, account } = parseArn(arn) ?? spec;
  return { ...omit(spec, 'deadLetterArn'), partition, account, ...owner, queueArn: arn, ...defined({ deadLetterArn }) };
}

interface BucketQueue {
  readonly arn: string;
  /** Absent: its redrive policy names none, or the queue itself. */
  readonly deadLetterArn?: string;
  /** Whose its tags say that it is. */
  readonly owner: Owner;
}

/** Reads the bucket queue with its dead-letter queue. Throws what reading it throws. */
export async function readBucketQueue(aws: Provisioner, queueUrl: string, signal?: AbortSignal): Promise<BucketQueue> {
  const { arn, attributes } = await aws.queueAt(queueUrl, signal);
  const deadLetterArn = deadLetterIn(attributes);
  const owner = ownerIn(await aws.queueTags(queueUrl, signal)) ?? NOBODY;
  return { arn, owner, ...(deadLetterArn !== arn && defined({ deadLetterArn })) };
}
