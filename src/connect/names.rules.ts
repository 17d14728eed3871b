/**
 * The names of what Tally makes in AWS, and the parts of ARNs. Every name begins with `tally-<installation>`. A name can be
 * given twice, so the owner of a part is known by the id of its registry: in its tags, or in the Id of a notification, the Sid of
 * a statement, the name of a selector. Both stand in the tags of the bucket queue, so they outlast every store.
 */
import { createHash } from 'node:crypto';
import { bucketSlug, type BucketSource } from '../records/bucket.ts';

/** The name of an installation: 8 hex digits. */
export const INSTALLATION = /^[0-9a-f]{8}$/;

/** Whose a part is: the name of the installation, which two may be given, and the id of the registry, which no other one has. */
export interface Owner {
  readonly installation: string;
  /** 32 hex digits. */
  readonly registry: string;
}

/** The owner of a bucket queue that `tally setup` has not made: no part is this one's. */
export const NOBODY: Owner = { installation: '0'.repeat(8), registry: '0'.repeat(32) };

/** The owner of a new bucket queue. It follows from the queue, so that two runs, and the Terraform module, give the same one. */
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

/** The parts of an ARN; undefined if the text is none. */
export function parseArn(text: string): Arn | undefined {
  const [, partition = '', service = '', region = '', account = '', resource = ''] = ARN.exec(text) ?? [];
  return partition === '' ? undefined : { partition, service, region, account, resource };
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

/** The digits of a registry's id that stand where no tag can be: 32 bits, for the few registries that copied settings can give one name. */
const MARK_DIGITS = 8;

/** The registry's id as it stands in names that have no room for the whole. */
export function shortRegistry({ registry }: Pick<Owner, 'registry'>): string {
  return registry.slice(0, MARK_DIGITS);
}

/** The Id of the notification of a registry, and the Sid of its statement in the policy of a topic: neither can have tags. */
export function markOf(owner: Owner): string {
  return `${prefixOf(owner.installation)}-${shortRegistry(owner)}`;
}

/** The tag by which the owner of a topic or rule is known. */
export const REGISTRY_TAG = 'tally:registry';
const INSTALLATION_TAG = 'tally:installation';
const REGISTRY = /^[0-9a-f]{32}$/;

export type Tags = Readonly<Record<string, string>>;

/** The tags of a part: those of a shared part name no bucket. */
export function tagsOf({ installation, registry }: Owner, bucket?: string): Tags {
  return { [INSTALLATION_TAG]: installation, [REGISTRY_TAG]: registry, ...(bucket !== undefined && { 'tally:bucket': bucket }) };
}

/** The owner that the tags of a bucket queue name; undefined if they name none. */
export function ownerIn({ [INSTALLATION_TAG]: installation = '', [REGISTRY_TAG]: registry = '' }: Tags): Owner | undefined {
  return INSTALLATION.test(installation) && REGISTRY.test(registry) ? { installation, registry } : undefined;
}

/** Tags as AWS takes them. */
export function tagList(tags: Tags): { readonly Key: string; readonly Value: string }[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

/** Tags as AWS answers them. */
export function tagsIn(list: readonly { readonly Key?: string | undefined; readonly Value?: string | undefined }[] = []): Tags {
  return Object.fromEntries(list.map(({ Key = '', Value = '' }) => [Key, Value]));
}

/** Whether something with these tags was made by this registry. */
export function isOwn(tags: Tags | undefined, { registry }: Pick<Owner, 'registry'>): boolean {
  return tags?.[REGISTRY_TAG] === registry;
}

/** Whose something with these tags is, as people read it. */
export function ownerText(tags: Tags | undefined): string {
  const registry = tags?.[REGISTRY_TAG];
  return registry === undefined ? `has no tag ${REGISTRY_TAG}, so it is not Tally's` : `belongs to another Tally registry, ${registry}`;
}

/** The topic that S3 publishes to (`events`), or that EventBridge publishes to (`routed`). There is one of each in a region. */
export function topicArnOf(installation: string, { partition, region, account }: Place, use: 'events' | 'routed'): string {
  return `arn:${partition}:sns:${region}:${account}:${prefixOf(installation)}-${use}`;
}

/** The dead-letter queue of a region without the bucket queue: SNS and EventBridge of a region take none of another one. */
export function farLettersArn(installation: string, { partition, region, account }: Place): string {
  return `arn:${partition}:sqs:${region}:${account}:${prefixOf(installation)}-dead-letters`;
}

const SLUG_MAX = 24;

/** The rule of a bucket: at most 48 of the 64 characters that EventBridge allows. Each source has its own, so that both can exist while the source changes. */
export function ruleNameOf(installation: string, bucket: string, source: BucketSource): string {
  const hash = createHash('sha256').update(`${source}:${bucket}`).digest('hex').slice(0, 8);
  return `${prefixOf(installation)}-${bucketSlug(bucket).slice(0, SLUG_MAX)}-${hash}`;
}

export function ruleArnOf({ partition, region, account }: Place, ruleName: string): string {
  return `arn:${partition}:events:${region}:${account}:rule/${ruleName}`;
}

/** The form of {@link markOf}. */
const MARK = /^tally-([0-9a-f]{8})-[0-9a-f]{8}$/;

/** The installation of another registry that an Id belongs to by its form; undefined if it has another form or is this registry's. */
export function otherInstallationOf(id: string, owner: Owner): string | undefined {
  return id === markOf(owner) ? undefined : MARK.exec(id)?.[1];
}

/**
 * The names by which SNS of a region calls a queue of another region. Where one of both must be enabled first, that region is in
 * the name: that of the queue if it is one, else that of the topic.
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
