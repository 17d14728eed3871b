/**
 * The names of what Tally makes in AWS, and the parts of ARNs. Every name begins with `tally-<installation>`, so that the
 * parts of two installations in one account never meet.
 */
import { createHash } from 'node:crypto';
import { bucketSlug, type BucketSource } from '../bucket.ts';

/** The name of an installation: 8 hex digits, made once and stored. */
export const INSTALLATION = /^[0-9a-f]{8}$/;

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

/** The common beginning of all names of an installation; also the Id of its notification. */
export function prefixOf(installation: string): string {
  return `tally-${installation}`;
}

/** The tags of a part: those of a shared part name no bucket. */
export function tagsOf(installation: string, bucket?: string): Readonly<Record<string, string>> {
  return { 'tally:installation': installation, ...(bucket !== undefined && { 'tally:bucket': bucket }) };
}

/** The topic that S3 publishes to (`events`), or that EventBridge publishes to (`routed`). There is one of each in a region. */
export function topicArnOf(installation: string, { partition, region, account }: Place, use: 'events' | 'routed'): string {
  return `arn:${partition}:sns:${region}:${account}:${prefixOf(installation)}-${use}`;
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

/** The other installation that a name belongs to by its form; undefined if it has another form or is this one's. */
export function otherInstallationOf(name: string, installation: string): string | undefined {
  const [, found] = /^tally-([0-9a-f]{8})(?:-|$)/.exec(name) ?? [];
  return found === installation ? undefined : found;
}

/**
 * The name by which SNS of a region calls services of another region. Regions that must be enabled first have a separate one.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-cross-region-delivery.html
 */
export function snsPrincipals(topicRegion: string, queueRegion: string): readonly string[] {
  return topicRegion !== queueRegion && OPT_IN.has(topicRegion)
    ? ['sns.amazonaws.com', `sns.${topicRegion}.amazonaws.com`]
    : ['sns.amazonaws.com'];
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
