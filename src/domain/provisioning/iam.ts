/** The policies with the least that Tally needs, for a process and, where a bucket belongs to another account, for a role there. */
import type { BucketSource } from '../bucket.ts';
import { domainOf } from './names.ts';
import { permissions, type IamRole, type Permission, type Resource } from './permissions.ts';

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
  /** The region and the account of the bucket, and so of its topic and rule. Absent: those above. */
  readonly bucketRegion?: string | undefined;
  readonly bucketAccount?: string | undefined;
  readonly installation: string;
  /** The roles that plan and apply, one in each account; none: that of the process. */
  readonly connectRoleArns?: readonly string[] | undefined;
  /** The key of the queues; absent: that of SQS. */
  readonly keyArn?: string | undefined;
  /** The trail that Tally may change, whose settings are the only ones that make it write to a trail. Absent: it writes to none. */
  readonly trailArn?: string | undefined;
  /** Whether the settings name the logs of a trail of others, which is read. */
  readonly readsTrails?: boolean | undefined;
  /** The topics of others with the source `topic` or `routed`, in this account or others; absent: all topics of this account with `topic`. */
  readonly topicArns?: readonly string[] | undefined;
}

/** The policy of a role as an IAM document. `besideBucket`: only what a role of the bucket's account needs, or only the rest. */
export function iamPolicy(role: IamRole, sources: readonly BucketSource[], names: IamNames, besideBucket?: boolean): object {
  const wanted = permissions.filter(
    (permission) =>
      isOfRole(permission, role, names) &&
      isOfSources(permission, sources, names) &&
      (besideBucket === undefined || (permission.besideBucket === true) === besideBucket),
  );
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

function isOfRole({ roles, resource }: Permission, role: IamRole, { account, bucketAccount = account }: IamNames): boolean {
  // without a daemon, who connects a bucket of another account assumes the role there
  return roles.includes(role) || (resource === 'role' && bucketAccount !== account);
}

function isOfSources({ sources: only, resource }: Permission, sources: readonly BucketSource[], names: IamNames): boolean {
  if (only === undefined || only.some((source) => sources.includes(source))) return true;
  // a rule sends to a queue of another region or account through a topic
  const isByTopic = sources.includes('eventbridge') && isElsewhere(names);
  return isByTopic && only.includes('routed') && (resource === 'topics' || resource === 'own-topics');
}

function isElsewhere(names: IamNames): boolean {
  const { bucketRegion, bucketAccount } = bucketPlace(names);
  return bucketRegion !== names.region || bucketAccount !== names.account;
}

/** Who is to get which policy where a bucket belongs to another account. */
interface BothSides {
  /** For the principal: the process that serves, or the person who connects. */
  readonly process: object;
  /** For the role of the bucket's account that the process assumes. */
  readonly role: object;
  /** Who may assume that role. */
  readonly trust_of_role: object;
  /** What the policy of the bucket lets the process read. */
  readonly bucket_policy: object;
}

interface Principal {
  /** The ARN of the role, or of the account, of the process. */
  readonly arn: string;
  readonly externalId?: string | undefined;
}

/** The policies of both accounts, for a bucket of another one than that of the queues. */
export function iamPolicies(role: IamRole, sources: readonly BucketSource[], names: IamNames, principal: Principal): BothSides {
  const reads = permissions.filter(
    (permission) =>
      permission.besideBucket !== true &&
      permission.roles.includes('daemon') &&
      isOfSources(permission, sources, names) &&
      (permission.resource === 'bucket' || permission.resource === 'objects'),
  );
  return {
    process: iamPolicy(role, sources, names, false),
    role: iamPolicy('connecting', sources, names, true),
    trust_of_role: {
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Allow',
          Principal: { AWS: principal.arn },
          Action: 'sts:AssumeRole',
          ...(principal.externalId !== undefined && { Condition: { StringEquals: { 'sts:ExternalId': principal.externalId } } }),
        },
      ],
    },
    bucket_policy: {
      Version: '2012-10-17',
      Statement: reads.map(({ sid, actions, resource }) => ({
        Sid: `Tally${sid}`,
        Effect: 'Allow',
        Principal: { AWS: principal.arn },
        Action: [...actions],
        Resource: resourcesOf(resource, sources, names),
      })),
    },
  };
}

/** The name of a service in conditions. */
function serviceOf(service: string, { partition, region }: IamNames): string {
  return `${service}.${region}.${domainOf(partition)}`;
}

/** The resources of a statement; none: there is nothing that it could be about. */
function resourcesOf(resource: Resource, sources: readonly BucketSource[], names: IamNames): string | readonly string[] {
  return RESOURCES[resource]({ ...names, ...bucketPlace(names) }, sources);
}

/** Where the bucket is, and so its topic and its rule. */
function bucketPlace({ region, account, bucketRegion = region, bucketAccount = account }: IamNames): Place {
  return { bucketRegion, bucketAccount };
}

type Place = Required<{ [Name in 'bucketRegion' | 'bucketAccount']: string }>;
type ResourceOf = (names: IamNames & Place, sources: readonly BucketSource[]) => string | readonly string[];

const NONE: readonly string[] = [];
const allQueues: ResourceOf = ({ bucketQueues, letterQueues }) => [...bucketQueues, ...letterQueues];
const key: ResourceOf = ({ keyArn }) => keyArn ?? NONE;

const RESOURCES: Readonly<Record<Resource, ResourceOf>> = {
  queues: allQueues,
  'new-queues': ({ newQueues }) => newQueues ?? NONE,
  'letter-queues': ({ letterQueues }) => letterQueues,
  undelivered: ({ partition, region, bucketRegion, account, installation }) =>
    bucketRegion === region ? NONE : `arn:${partition}:sqs:${bucketRegion}:${account}:tally-${installation}-*-undelivered`,
  topics: (names, sources) => topicsOf(sources, names),
  'own-topics': ({ partition, bucketRegion, bucketAccount, installation }) =>
    `arn:${partition}:sns:${bucketRegion}:${bucketAccount}:tally-${installation}-*`,
  'named-topics': ({ topicArns }) => topicArns ?? NONE,
  bucket: ({ partition, bucket }) => `arn:${partition}:s3:::${bucket}`,
  objects: ({ partition, bucket }) => `arn:${partition}:s3:::${bucket}/*`,
  rules: ({ partition, bucketRegion, bucketAccount, installation }) =>
    `arn:${partition}:events:${bucketRegion}:${bucketAccount}:rule/tally-${installation}-*`,
  // ListRules takes no resource
  'all-rules': () => '*',
  // DescribeTrails takes no resource
  'all-trails': ({ trailArn, readsTrails }) => (trailArn !== undefined || readsTrails === true ? '*' : NONE),
  // a trail is found by its logs, and may have any name
  trails: ({ trailArn, readsTrails }) => trailArn ?? (readsTrails === true ? '*' : NONE),
  'own-trail': ({ trailArn }) => trailArn ?? NONE,
  key,
  'key-policies': key,
  role: ({ connectRoleArns }) => connectRoleArns ?? NONE,
};

/** Tally's own topics, and with the sources `topic` and `routed` those of others: a topic of another account only if it is named. */
function topicsOf(
  sources: readonly BucketSource[],
  { partition, installation, topicArns, bucketRegion: region, bucketAccount: account }: IamNames & Place,
): string | readonly string[] {
  const own = `arn:${partition}:sns:${region}:${account}:tally-${installation}-*`;
  const isForeign = sources.includes('topic') || (sources.includes('routed') && topicArns !== undefined);
  if (!isForeign) return own;
  if (topicArns === undefined) return `arn:${partition}:sns:${region}:${account}:*`;
  return sources.some((source) => source === 'notification' || source === 'routed') ? [own, ...topicArns] : topicArns;
}
