/** The parts of AWS that a connection is made of, in memory, with AWS's own refusals. Each call can be interrupted. */
import { defined } from '../../../src/base/defined.ts';
import { FaultError } from '../../../src/base/fault.ts';
import { deadLetterIn, queueMissing, RECEIVES_WANTED, sharedParts } from '../../../src/connect/shared.rules.ts';
import type { NotificationConfiguration, NotificationEntry } from '../../../src/connect/notification.rules.ts';
import { markOf, prefixOf, ruleNameOf, type Owner, type Tags } from '../../../src/connect/names.rules.ts';
import type { ObservedQueue, ObservedRule, ObservedSubscription, ObservedTrail } from '../../../src/connect/plan.rules.ts';
import { parsePolicy } from '../../../src/connect/policy.rules.ts';
import { parseSelectors, type Selectors } from '../../../src/connect/trail.rules.ts';
import type { ConnectionSpec } from '../../../src/records/bucket.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import type { Provisioner } from '../../../src/connect/aws/provisioner.ts';
import { createConnections, type Connections } from '../../../src/connect/connections.ts';

type ConnectionParts = Parameters<typeof createConnections>[0];

export const ACCOUNT = '123456789012';
export const REGION = 'us-east-1';
export const INSTALLATION = '0a1b2c3d';
/** The id of the registry, of which the first eight digits stand in Ids and Sids. */
export const REGISTRY = '5e6f708192a3b4c5d6e7f8091a2b3c4d';
export const MARK = markOf({ installation: INSTALLATION, registry: REGISTRY });
export const QUEUE_URL = `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/tally-bucket-events`;
export const QUEUE_ARN = `arn:aws:sqs:${REGION}:${ACCOUNT}:tally-bucket-events`;
export const LETTERS_ARN = `arn:aws:sqs:${REGION}:${ACCOUNT}:tally-dead-letters`;
export const TOPIC_ARN = `arn:aws:sns:${REGION}:${ACCOUNT}:${prefixOf(INSTALLATION)}-events`;
export const ROUTED_ARN = `arn:aws:sns:${REGION}:${ACCOUNT}:${prefixOf(INSTALLATION)}-routed`;
export const THEIR_TOPIC = `arn:aws:sns:${REGION}:${ACCOUNT}:their-topic`;

/** CloudTrail answers each basic selector, and each condition of an advanced one, with empty lists that were not written. */
export function asAnswered(selectors: Selectors): Selectors {
  if (selectors.kind !== 'advanced')
    return { ...selectors, list: selectors.list.map((each) => ({ ExcludeManagementEventSources: [], ...each })) };
  const none = { Equals: [], StartsWith: [], EndsWith: [], NotEquals: [], NotStartsWith: [], NotEndsWith: [] };
  const list = selectors.list.map((each) => ({
    ...each,
    FieldSelectors: [each['FieldSelectors'] ?? []].flat().map((condition) => ({ ...none, ...condition })),
  }));
  return parseSelectors({ AdvancedEventSelectors: list });
}

/** A bucket `photos` that is to send notifications. */
export const spec: ConnectionSpec = {
  bucket: 'photos',
  partition: 'aws',
  region: REGION,
  account: ACCOUNT,
  bucketAccount: ACCOUNT,
  installation: INSTALLATION,
  registry: REGISTRY,
  source: 'notification',
  enrich: 'none',
  queueArn: QUEUE_ARN,
  deadLetterArn: LETTERS_ARN,
};

/** The rule of `photos` with this source. */
export function ruleName(source: 'eventbridge' | 'routed'): string {
  return ruleNameOf(INSTALLATION, 'photos', source);
}

interface Subscription {
  readonly arn?: string;
  readonly isPending: boolean;
  readonly isRaw: boolean;
  readonly filterPolicy?: string;
  readonly deadLetterArn?: string;
}

interface Topic {
  policy: string;
  /** By queue. */
  readonly subscriptions: Map<string, Subscription>;
}

interface Queue {
  tags?: Tags;
  policy?: string | undefined;
  /** The target of its redrive policy. Absent: the queue has none. */
  deadLetterArn?: string;
  retentionS?: number;
  messages?: number;
}

interface AwsParts {
  readonly notifications: Map<string, NotificationConfiguration | string>;
  readonly topics: Map<string, Topic>;
  readonly queues: Map<string, Queue>;
  readonly rules: Map<string, ObservedRule>;
  readonly trails: Map<string, ObservedTrail>;
  readonly published: { readonly topicArn: string; readonly message: string }[];
}

/** Makes what all buckets share, as `tally setup` does. */
export function setUp(
  { queues, topics }: AwsParts,
  region = REGION,
  owner: Owner = { installation: INSTALLATION, registry: REGISTRY },
): void {
  const parts = sharedParts(owner, {
    queues: { bucket: QUEUE_ARN, letters: LETTERS_ARN },
    home: { partition: 'aws', region: REGION, account: ACCOUNT },
    region,
  });
  for (const { kind, arn, endpoint = '', attributes, tags } of parts) {
    const policy = JSON.stringify(attributes['Policy']);
    if (kind === 'queue') queues.set(arn, { ...queues.get(arn), ...(arn === QUEUE_ARN && { deadLetterArn: LETTERS_ARN, tags }), policy });
    else if (kind === 'topic') topics.set(arn, { policy, subscriptions: new Map() });
    else
      topics.get(arn)?.subscriptions.set(endpoint, {
        arn: `${arn}:tally`,
        isPending: false,
        isRaw: false,
        deadLetterArn: (attributes['RedrivePolicy'] as { readonly deadLetterTargetArn: string }).deadLetterTargetArn,
      });
  }
}

/** Creates one that is set up, with a bucket `photos` without notifications. */
export function createFakeAws() {
  const parts: AwsParts = {
    notifications: new Map([['photos', { entries: [], eventBridge: false }]]),
    topics: new Map(),
    queues: new Map(),
    rules: new Map(),
    trails: new Map(),
    published: [],
  };
  setUp(parts);
  /** The names of all writes so far. */
  const writes: string[] = [];
  let count = 0;
  const fake = {
    /** Called before each call, with its number among all; what it throws interrupts the call. */
    before: (_call: string, _count: number): void => undefined,
    /** The same after each call, whose effect has happened. */
    after: (_call: string, _count: number): void => undefined,
  };

  async function call<Answer>(name: string, isWrite: boolean, answer: () => Answer): Promise<Answer> {
    count += 1;
    const number = count;
    fake.before(name, number);
    if (isWrite) writes.push(name);
    const result = answer();
    fake.after(name, number);
    return result;
  }

  function topic(arn: string): Topic {
    const found = parts.topics.get(arn);
    if (found === undefined) throw new FaultError('connect.unavailable', `there is no topic ${arn}`);
    return found;
  }

  function queue(arn: string): Queue {
    const found = parts.queues.get(arn);
    if (found === undefined) throw queueMissing(`GetQueueAttributes ${arn}`, arn.split(':')[3]);
    return found;
  }

  function subscription(arn: string): { readonly topic: Topic; readonly queueArn: string; readonly found: Subscription } | undefined {
    for (const each of parts.topics.values()) {
      for (const [queueArn, found] of each.subscriptions) if (found.arn === arn) return { topic: each, queueArn, found };
    }
    return undefined;
  }

  function validate(bucket: string, { entries }: NotificationConfiguration): void {
    const wrong = entries.find(({ arn, kind }) => kind === 'topic' && !mayPublish(parts.topics.get(arn)?.policy));
    if (wrong !== undefined)
      throw new RequestError('connect.destination', `Unable to validate the following destination configurations: ${bucket} ${wrong.arn}`);
  }

  const aws: Provisioner = {
    notificationOf: ({ bucket }) =>
      call('notificationOf', false, () => {
        const found = parts.notifications.get(bucket);
        if (found === undefined) throw new FaultError('bucket.missing', `there is no bucket ${bucket}`);
        return typeof found === 'string' ? found : notificationXml(found);
      }),
    putNotification: ({ bucket }, configuration, { skipValidation }) =>
      call('putNotification', true, () => {
        if (!parts.notifications.has(bucket)) throw new FaultError('bucket.missing', `there is no bucket ${bucket}`);
        if (!skipValidation) validate(bucket, configuration);
        parts.notifications.set(bucket, configuration);
      }),
    queueAt: (url) => call('queueAt', false, () => observedQueue(arnAt(url))),
    queueTags: (url) => call('queueTags', false, () => queue(arnAt(url)).tags ?? {}),
    queueOf: (arn) => call('queueOf', false, () => (parts.queues.has(arn) ? observedQueue(arn) : 'absent')),
    topicOf: (arn, queueArn) =>
      call('topicOf', false, () => {
        const found = parts.topics.get(arn);
        if (found === undefined) return 'absent';
        const { policy, subscriptions } = found;
        const subscribed = subscriptions.get(queueArn);
        return { attributes: { Policy: policy }, subscription: subscribed === undefined ? 'absent' : observedSubscription(subscribed) };
      }),
    ruleOf: (at, name) => call('ruleOf', false, () => parts.rules.get(ruleKey(at, name)) ?? 'absent'),
    ruleCount: () => call('ruleCount', false, () => parts.rules.size),
    setTopic: (arn, { Policy = '' }) => call('setTopic', true, () => void (topic(arn).policy = Policy)),
    setQueue: (arn, { Policy = '' }) => call('setQueue', true, () => void (queue(arn).policy = Policy === '' ? undefined : Policy)),
    subscribe: (topicArn, queueArn, attributes) =>
      call('subscribe', true, () => {
        const { subscriptions } = topic(topicArn);
        const arn = `${topicArn}:${queueArn.split(':').at(-1) ?? ''}`;
        subscriptions.set(queueArn, { arn, isPending: false, isRaw: false, ...defined({ deadLetterArn: deadLetterIn(attributes) }) });
      }),
    putRule: (at, { name, pattern }, tags) =>
      call(
        'putRule',
        true,
        // EventBridge ignores the tags if the rule exists
        () =>
          void parts.rules.set(ruleKey(at, name), {
            targets: [],
            tags,
            ...parts.rules.get(ruleKey(at, name)),
            pattern: JSON.stringify(pattern),
            isEnabled: true,
          }),
      ),
    putTarget: (at, { name, target }) =>
      call('putTarget', true, () => {
        const rule = parts.rules.get(ruleKey(at, name))!;
        parts.rules.set(ruleKey(at, name), { ...rule, targets: [...rule.targets.filter(({ Id }) => Id !== target.Id), target] });
      }),
    trailOf: (arn) =>
      call('trailOf', false, () => {
        const trail = parts.trails.get(arn);
        return trail === undefined ? 'absent' : { ...trail, selectors: asAnswered(trail.selectors) };
      }),
    putSelectors: (arn, selectors) =>
      call('putSelectors', true, () => void parts.trails.set(arn, { ...parts.trails.get(arn)!, selectors })),
    removeRule: (at, { name }) => call('removeRule', true, () => void parts.rules.delete(ruleKey(at, name))),
    publish: (topicArn, message) => call('publish', false, () => void parts.published.push({ topicArn, message })),
    unsubscribe: (arn) =>
      call('unsubscribe', true, () => {
        const found = subscription(arn);
        found?.topic.subscriptions.delete(found.queueArn);
      }),
  };

  function observedQueue(arn: string): ObservedQueue {
    const { policy: Policy, deadLetterArn, retentionS = 604_800, messages } = queue(arn);
    const attributes = defined({
      Policy,
      MessageRetentionPeriod: String(retentionS),
      ApproximateNumberOfMessages: messages === undefined ? undefined : String(messages),
      RedrivePolicy: deadLetterArn && redriveTo(deadLetterArn, { maxReceiveCount: RECEIVES_WANTED }),
    });
    return { arn, url: `https://queues/${arn}`, attributes };
  }

  function observedSubscription({ arn, isPending, isRaw, filterPolicy: FilterPolicy, deadLetterArn }: Subscription): ObservedSubscription {
    const attributes = defined({
      PendingConfirmation: String(isPending),
      RawMessageDelivery: String(isRaw),
      FilterPolicy,
      RedrivePolicy: deadLetterArn && redriveTo(deadLetterArn),
    });
    return { attributes, ...defined({ arn }) };
  }

  return Object.assign(fake, aws, {
    parts,
    writes,
    /** Everything that is there, comparable. */
    snapshot: (): unknown =>
      structuredClone({
        notifications: [...parts.notifications],
        topics: [...parts.topics].map(([arn, { subscriptions, ...rest }]) => [arn, rest, [...subscriptions]]),
        queues: [...parts.queues],
        rules: [...parts.rules],
        trails: [...parts.trails],
      }),
  });
}

function redriveTo(deadLetterTargetArn: string, more: object = {}): string {
  return JSON.stringify({ deadLetterTargetArn, ...more });
}

/** Each region has a bus of its own. */
function ruleKey({ region }: { readonly region: string }, name: string): string {
  return region === REGION ? name : `${name} ${region}`;
}

function arnAt(queueUrl: string): string {
  return `arn:aws:sqs:${REGION}:${ACCOUNT}:${queueUrl.split('/').at(-1) ?? ''}`;
}

function mayPublish(policy: string | undefined): boolean {
  return parsePolicy(policy).Statement.some(({ Principal }) => JSON.stringify(Principal)?.includes('s3.amazonaws.com'));
}

const ELEMENTS = {
  topic: ['TopicConfiguration', 'Topic'],
  queue: ['QueueConfiguration', 'Queue'],
  function: ['CloudFunctionConfiguration', 'CloudFunction'],
} as const;

/** The document as S3 writes it. */
export function notificationXml({ entries, eventBridge }: NotificationConfiguration): string {
  const bridge = eventBridge ? '<EventBridgeConfiguration/>' : '';
  return `<?xml version="1.0" encoding="UTF-8"?>\n<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${entries.map(entryXml).join('')}${bridge}</NotificationConfiguration>`;
}

function entryXml({ kind, id, arn, events, filter }: NotificationEntry): string {
  const [element, destination] = ELEMENTS[kind];
  const rules = filter.map(
    ({ name, value }) => `<FilterRule><Name>${name === 'prefix' ? 'Prefix' : 'Suffix'}</Name><Value>${escaped(value)}</Value></FilterRule>`,
  );
  const filters = rules.length === 0 ? '' : `<Filter><S3Key>${rules.join('')}</S3Key></Filter>`;
  return `<${element}><Id>${escaped(id)}</Id><${destination}>${escaped(arn)}</${destination}>${events.map((event) => `<Event>${event}</Event>`).join('')}${filters}</${element}>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** What operations need to change this AWS. Waits pass at once if the clock does not wait. */
export function connectionsOn(
  aws: Provisioner,
  world: Pick<ConnectionParts, 'state' | 'storage' | 'clock'> & Partial<ConnectionParts>,
): Connections {
  const clock = { ...world.clock, sleep: async () => undefined };
  return createConnections({ queueUrls: [QUEUE_URL], isEmbedded: false, ...world, clock, aws });
}
