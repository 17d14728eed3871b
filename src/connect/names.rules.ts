/**
 * The names of what Tally makes in AWS, and ARNs' parts. Every name begins with `tally-<installation>`. Two installations may have the
 * same name, so the registry's id identifies a part's owner: in the part's tags, a notification's Id, a statement's Sid or a selector's
 * name. The bucket queue's tags hold both, so they outlast every store.
 */
import { createHash } from 'node:crypto';
import { FaultError } from '../base/fault.ts';
import { bucketSlug, type BucketSource } from '../records/bucket.ts';

/** The name of an installation: 8 hex digits. */
export const INSTALLATION = /^[0-9a-f]{8}$/;

/** A part's owner: the installation's name, which another may share, and the registry's id, which is unique. */
export interface Owner {
  readonly installation: string;
  /** 32 hex digits. */
  readonly registry: string;
}

/** The owner of a bucket queue that `tally setup` did not make. It owns no part. */
export const NOBODY: Owner = { installation: '0'.repeat(8), registry: '0'.repeat(32) };

/** A new bucket queue's owner, derived from the queue so that repeated runs and the Terraform module agree. */
export function newOwner(queueArn: string, named?: string): Owner {
  const digits = createHash('sha256').update(`tally ${queueArn}`).digest('hex');
  return { installation: named ?? digits.slice(0, 8), registry: digits.slice(8, 40) };
}

/** Where parts are made. */
export interface Place {
  /** `aws`, `aws-cn`, `aws-us-gov` … */
  readonly partition: string;
  readonly region: string;
  /** The account of the queues and topics. */
  readonly account: string;
}

export interface Arn extends Place {
  readonly service: string;
  readonly resource: string;
}

const ARN = /^arn:(aws[a-z0-9-]*):([a-z0-9-]+):([a-z0-9-]*):(\d{12}|):(.+)$/;

/** The parts of an ARN; undefined if the text is not an ARN. */
export function parseArn(text: string): Arn | undefined {
  const [, partition = '', service = '', region = '', account = '', resource = ''] = ARN.exec(text) ?? [];
  return partition === '' ? undefined : { partition, service, region, account, resource };
}

/** The parts of what must be an ARN. Throws `connect.unavailable` if it is not. */
export function arnOf(text: string): Arn {
  const arn = parseArn(text);
  if (arn === undefined) throw new FaultError('connect.unavailable', `${text} is not an ARN`);
  return arn;
}

/** The partitions of AWS besides `aws`: how their regions begin, and the domain of their services. */
const partitions: readonly { readonly regions: string; readonly name: string; readonly domain: string }[] = [
  { regions: 'cn-', name: 'aws-cn', domain: 'amazonaws.com.cn' },
  { regions: 'us-gov-', name: 'aws-us-gov', domain: 'amazonaws.com' },
  { regions: 'us-iso-', name: 'aws-iso', domain: 'c2s.ic.gov' },
  { regions: 'us-isob-', name: 'aws-iso-b', domain: 'sc2s.sgov.gov' },
  { regions: 'eu-isoe-', name: 'aws-iso-e', domain: 'cloud.adc-e.uk' },
  { regions: 'us-isof-', name: 'aws-iso-f', domain: 'csp.hci.ic.gov' },
  { regions: 'eusc-', name: 'aws-eusc', domain: 'amazonaws.eu' },
];

/** Returns the partition of a region. */
export function partitionOf(region: string): string {
  return partitions.find(({ regions }) => region.startsWith(regions))?.name ?? 'aws';
}

/** Returns the domain of the services of a partition. */
export function domainOf(partition: string): string {
  return partitions.find(({ name }) => name === partition)?.domain ?? 'amazonaws.com';
}

/** Whether an endpoint is one of AWS itself; absent: the SDK's own choice, which is. */
export function isAwsEndpoint(endpoint: string | undefined): boolean {
  if (endpoint === undefined) return true;
  const { hostname } = new URL(endpoint);
  return ['amazonaws.com', ...partitions.map(({ domain }) => domain)].some((domain) => hostname.endsWith(`.${domain}`));
}

/** The common beginning of all names of an installation. */
export function prefixOf(installation: string): string {
  return `tally-${installation}`;
}

/** The digits of a registry's id used where tags are impossible: 32 bits suffice for the few registries that share a name through copied settings. */
const MARK_DIGITS = 8;

/** The registry's id, shortened for names. */
export function shortRegistry({ registry }: Pick<Owner, 'registry'>): string {
  return registry.slice(0, MARK_DIGITS);
}

/** The Id of a registry's notification, and the Sid of its statement in a topic's policy: neither can have tags. */
export function markOf(owner: Owner): string {
  return `${prefixOf(owner.installation)}-${shortRegistry(owner)}`;
}

/** The tag that identifies the owner of a topic or rule. */
export const REGISTRY_TAG = 'tally:registry';
const INSTALLATION_TAG = 'tally:installation';
const REGISTRY = /^[0-9a-f]{32}$/;

export type Tags = Readonly<Record<string, string>>;

/** A part's tags. Those of a shared part name no bucket. */
export function tagsOf({ installation, registry }: Owner, bucket?: string): Tags {
  return { [INSTALLATION_TAG]: installation, [REGISTRY_TAG]: registry, ...(bucket !== undefined && { 'tally:bucket': bucket }) };
}

/** The owner in a bucket queue's tags; undefined if there is none. */
export function ownerIn({ [INSTALLATION_TAG]: installation = '', [REGISTRY_TAG]: registry = '' }: Tags): Owner | undefined {
  return INSTALLATION.test(installation) && REGISTRY.test(registry) ? { installation, registry } : undefined;
}

/** Tags as AWS accepts them. */
export function tagList(tags: Tags): { readonly Key: string; readonly Value: string }[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

/** Tags as AWS returns them. */
export function tagsIn(list: readonly { readonly Key?: string | undefined; readonly Value?: string | undefined }[] = []): Tags {
  return Object.fromEntries(list.map(({ Key = '', Value = '' }) => [Key, Value]));
}

/** Whether this registry made the part with these tags. */
export function isOwn(tags: Tags | undefined, { registry }: Pick<Owner, 'registry'>): boolean {
  return tags?.[REGISTRY_TAG] === registry;
}

/** Says who owns a part with these tags. */
export function ownerText(tags: Tags | undefined): string {
  const registry = tags?.[REGISTRY_TAG];
  return registry === undefined ? `has no tag ${REGISTRY_TAG}, so it is not Tally's` : `belongs to another Tally registry, ${registry}`;
}

/** The region's topic for S3 (`events`) or for EventBridge (`routed`). */
export function topicArnOf(installation: string, { partition, region, account }: Place, use: 'events' | 'routed'): string {
  return `arn:${partition}:sns:${region}:${account}:${prefixOf(installation)}-${use}`;
}

const OF_TALLY = /^tally-[0-9a-f]{8}-(?:events|routed)$/;

/** Whether the topic is one that {@link topicArnOf} names, of this installation or another. */
export function isTallysTopic(topicArn: string): boolean {
  return OF_TALLY.test(parseArn(topicArn)?.resource ?? '');
}

/** The dead-letter queue of a region other than the bucket queue's: SNS and EventBridge require one in their own region. */
export function farLettersArn(installation: string, { partition, region, account }: Place): string {
  return `arn:${partition}:sqs:${region}:${account}:${prefixOf(installation)}-dead-letters`;
}

const SLUG_MAX = 24;

/** A bucket's rule: at most 48 of EventBridge's 64 characters. Each source has its own, so that both can exist while the source changes. */
export function ruleNameOf(installation: string, bucket: string, source: BucketSource): string {
  const hash = createHash('sha256').update(`${source}:${bucket}`).digest('hex').slice(0, 8);
  return `${prefixOf(installation)}-${bucketSlug(bucket).slice(0, SLUG_MAX)}-${hash}`;
}

export function ruleArnOf({ partition, region, account }: Place, ruleName: string): string {
  return `arn:${partition}:events:${region}:${account}:rule/${ruleName}`;
}

/**
 * The service names that SNS uses to send from one region to a queue in another. If accounts must enable a region first, its name is
 * in SNS's: the queue's region if that is one, else the topic's.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-cross-region-delivery.html
 */
export function snsPrincipals(topicRegion: string, queueRegion: string): readonly string[] {
  if (topicRegion === queueRegion) return ['sns.amazonaws.com'];
  const optIn = [queueRegion, topicRegion].filter((region) => OPT_IN.has(region));
  return ['sns.amazonaws.com', ...optIn.map((region) => `sns.${region}.amazonaws.com`)];
}

const OPT_IN = new Set([
  'af-south-1',
  'ap-east-1',
  'ap-east-2',
  'ap-south-2',
  'ap-southeast-3',
  'ap-southeast-4',
  'ap-southeast-5',
  'ap-southeast-6',
  'ap-southeast-7',
  'ca-west-1',
  'eu-central-2',
  'eu-south-1',
  'eu-south-2',
  'il-central-1',
  'me-central-1',
  'me-south-1',
  'mx-central-1',
]);
