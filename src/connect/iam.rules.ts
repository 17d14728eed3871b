/** The policies with the least that Tally needs. */
import type { BucketSource } from '../records/bucket.ts';
import { domainOf, farLettersArn, type Place } from './names.rules.ts';
import { permissions, type IamRole, type Permission, type Resource } from './permissions.rules.ts';

/** The names of a policy's resources. `*` where one is not known. */
export interface IamNames {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
  /** The ARNs of the bucket queues. */
  readonly bucketQueues: readonly string[];
  /** The ARNs of their dead-letter queues. */
  readonly letterQueues: readonly string[];
  /** The ARNs of the queues that are to be made, for who makes queues. */
  readonly newQueues?: readonly string[];
  readonly bucket: string;
  /** The region of the bucket, and so of its topic and rule. Absent: that above. */
  readonly bucketRegion?: string | undefined;
  readonly installation: string;
  /** The key of the queues; absent: that of SQS. */
  readonly keyArn?: string | undefined;
  /** The trail that Tally may change, whose settings are the only ones that make it write to a trail. Absent: it writes to none. */
  readonly trailArn?: string | undefined;
  /** Whether the settings name the logs of a trail of others, which is read. */
  readonly readsTrails?: boolean | undefined;
  /** The topics of others with the source `topic` or `routed`, in this account or others; absent: all topics of this account with `topic`. */
  readonly topicArns?: readonly string[] | undefined;
}

/** The policy of a role as an IAM document. */
export function iamPolicy(role: IamRole, sources: readonly BucketSource[], names: IamNames): object {
  const wanted = permissions.filter((permission) => permission.roles.includes(role) && isOfSources(permission, sources, names));
  return {
    Version: '2012-10-17',
    Statement: wanted.flatMap(({ sid, actions, resource }) => {
      const resources = resourcesOf(resource, sources, names);
      if (resources.length === 0) return [];
      return {
        Sid: sid,
        Effect: 'Allow',
        Action: [...actions],
        Resource: resources,
        // the key is for the queues: no request to KMS itself is permitted
        ...(resource === 'key' && { Condition: { StringEquals: { 'kms:ViaService': serviceOf('sqs', names) } } }),
      };
    }),
  };
}

function isOfSources({ sources: only, resource }: Permission, sources: readonly BucketSource[], names: IamNames): boolean {
  if (only === undefined || only.some((source) => sources.includes(source))) return true;
  // a rule sends to a queue of another region through a topic
  const isByTopic = sources.includes('eventbridge') && isElsewhere(names);
  return isByTopic && only.includes('notification') && (resource === 'topics' || resource === 'own-topics');
}

function isElsewhere({ region, bucketRegion = region }: IamNames): boolean {
  return bucketRegion !== region;
}

/** The name of a service in conditions. */
function serviceOf(service: string, { partition, region }: IamNames): string {
  return `${service}.${region}.${domainOf(partition)}`;
}

/** The resources of a statement; none: there is nothing that it could be about. */
function resourcesOf(resource: Resource, sources: readonly BucketSource[], names: IamNames): string | readonly string[] {
  return RESOURCES[resource]({ ...names, bucketRegion: names.bucketRegion ?? names.region }, sources);
}

type Placed = IamNames & { readonly bucketRegion: string };
type ResourceOf = (names: Placed, sources: readonly BucketSource[]) => string | readonly string[];

const NONE: readonly string[] = [];
const placeOf = ({ partition, account, bucketRegion: region }: Placed): Place => ({ partition, account, region });
const allQueues: ResourceOf = ({ bucketQueues, letterQueues }) => [...bucketQueues, ...letterQueues];

const RESOURCES: Readonly<Record<Resource, ResourceOf>> = {
  queues: allQueues,
  'bucket-queues': ({ bucketQueues }) => bucketQueues,
  'new-queues': (names) => [
    ...(names.newQueues ?? NONE),
    ...(names.bucketRegion === names.region ? NONE : [farLettersArn(names.installation, placeOf(names))]),
  ],
  'letter-queues': ({ letterQueues }) => letterQueues,
  'far-letters': (names) => (names.bucketRegion === names.region ? NONE : farLettersArn(names.installation, placeOf(names))),
  topics: (names, sources) => topicsOf(sources, names),
  'own-topics': ({ partition, bucketRegion, account, installation }) =>
    `arn:${partition}:sns:${bucketRegion}:${account}:tally-${installation}-*`,
  'named-topics': ({ topicArns }) => topicArns ?? NONE,
  bucket: ({ partition, bucket }) => `arn:${partition}:s3:::${bucket}`,
  objects: ({ partition, bucket }) => `arn:${partition}:s3:::${bucket}/*`,
  rules: ({ partition, bucketRegion, account, installation }) =>
    `arn:${partition}:events:${bucketRegion}:${account}:rule/tally-${installation}-*`,
  // ListRules takes no resource
  'all-rules': () => '*',
  // DescribeTrails takes no resource
  'all-trails': ({ trailArn, readsTrails }) => (trailArn !== undefined || readsTrails === true ? '*' : NONE),
  // a trail is found by its logs, and may have any name
  trails: ({ trailArn, readsTrails }) => trailArn ?? (readsTrails === true ? '*' : NONE),
  'own-trail': ({ trailArn }) => trailArn ?? NONE,
  key: ({ keyArn }) => keyArn ?? NONE,
};

/** Tally's own topics, and with the sources `topic` and `routed` those of others: a topic of another account only if it is named. */
function topicsOf(
  sources: readonly BucketSource[],
  { partition, installation, topicArns, bucketRegion: region, account }: Placed,
): string | readonly string[] {
  const own = `arn:${partition}:sns:${region}:${account}:tally-${installation}-*`;
  const isForeign = sources.includes('topic') || (sources.includes('routed') && topicArns !== undefined);
  if (!isForeign) return own;
  if (topicArns === undefined) return `arn:${partition}:sns:${region}:${account}:*`;
  return sources.some((source) => source === 'notification' || source === 'routed') ? [own, ...topicArns] : topicArns;
}
