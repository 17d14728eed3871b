/**
 * The five sources: what a bucket must have (`desired`), what is there (`createLookAt`), and what differs (`diff`, `removal`). Each change
 * knows how to make itself. Plans, applies, removals and the doctor all use these functions, so they cannot disagree.
 */
import type { BucketSource, ConnectionSpec } from '../../records/bucket.ts';
import { defined } from '../../base/defined.ts';
import { FaultError } from '../../base/fault.ts';
import { fingerprintOf, foreignStatements, parsePolicy } from '../policy.rules.ts';
import { parseArn, NOBODY } from '../names.rules.ts';
import { canonicalEntry, foreignEntries, parseNotification } from '../notification.rules.ts';
import type { Observed, Change, Kept, Plan, Attributes } from '../plan.rules.ts';
import { queueMissing, confirmed, differencesOf, nameOf, setupCommand, sharedParts, type SharedPart } from '../shared.rules.ts';
import { desiredEventBridge, keptSwitch, ruleChanges, ruleForeign, ruleRemoval } from './eventbridge.ts';
import { existing, ownedBucket, type Check, type Desired, type Look, type Remains, type Tools, queueIn } from './look.ts';
import {
  configurationUnknown,
  desiredNotification,
  notificationChanges,
  notificationOverlap,
  notificationRemoval,
} from './notification.ts';
import { desiredRouted, theirSelectors, trailChanges, trailCheck, trailRemoval } from './routed.ts';
import { desiredWebhook } from './webhook.ts';
import { desiredTopic, namedTopicMissing, sidsOf, subscriptionAltered, topicChanges, topicRemovals } from './topic.ts';
import { blocking, degraded, type Finding } from '../finding.rules.ts';

const sources: Readonly<Record<BucketSource, (spec: ConnectionSpec) => Desired>> = {
  notification: desiredNotification,
  topic: desiredTopic,
  eventbridge: desiredEventBridge,
  routed: desiredRouted,
  webhook: desiredWebhook,
};

const NOTHING: Desired = { queues: [] };

/** What the bucket must have. If a person wired it, that is only the path from a named topic. */
export function desired(spec: ConnectionSpec): Desired {
  const whole = sources[spec.source](spec);
  if (spec.byHand !== true) return whole;
  const { subscription, queues } = whole;
  return spec.topicArn === undefined ? NOTHING : { ...defined({ subscription }), queues };
}

interface ReadOptions {
  /** Treats a missing bucket's configuration as empty, and leaves out missing queues. */
  readonly mayBeGone?: boolean;
}

export type LookAt = (spec: ConnectionSpec, signal?: AbortSignal, options?: ReadOptions) => Promise<Look>;

/** An empty configuration. */
const NONE = '<NotificationConfiguration/>';

/** Creates the function that reads everything a spec is about. It throws what the reads throw. */
export function createLookAt(tools: Tools): LookAt {
  const { aws } = tools;
  return async function lookAt(spec, signal, { mayBeGone = false } = {}) {
    const wanted = desired(spec);
    // a store of one's own may have none, or a meaningless one
    const reading = spec.source === 'webhook' ? Promise.resolve('') : aws.notificationOf(ownedBucket(spec), signal);
    // a person's wiring works without it
    const xml = await (mayBeGone ? unlessGone(reading) : spec.byHand === true ? reading.catch(() => '') : reading);
    const { subscription } = wanted;
    const topic = subscription && (await aws.topicOf(subscription.topicArn, subscription.queueArn, signal));
    const rule = wanted.rule && (await aws.ruleOf(spec, wanted.rule.name, signal));
    const observed: Observed = {
      notification: { ...parseNotification(xml), xml },
      queues: await readQueues(spec, wanted, mayBeGone, signal),
      ...defined({ topic, rule, trail: wanted.trailArn === undefined ? undefined : await aws.trailOf(wanted.trailArn, signal) }),
    };
    return { spec, desired: wanted, observed, tools };
  };

  async function readQueues(spec: ConnectionSpec, { queues }: Desired, mayBeGone: boolean, signal?: AbortSignal) {
    const observed = [];
    for (const arn of new Set([spec.queueArn, ...queues, spec.deadLetterArn ?? []].flat())) {
      const queue = await aws.queueOf(arn, signal);
      if (queue !== 'absent') observed.push(queue);
      // a missing dead-letter queue is only a finding
      else if (!mayBeGone && arn === spec.queueArn) throw queueMissing(`GetQueueUrl ${arn}`, parseArn(arn)?.region);
    }
    return observed;
  }
}

async function unlessGone(reading: Promise<string>): Promise<string> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof FaultError && error.code === 'bucket.missing') return NONE;
    throw error;
  }
}

/** The checks in the order in which findings are shown. */
const checks: readonly Check[] = [
  configurationUnknown,
  ruleForeign,
  notificationOverlap,
  namedTopicMissing,
  subscriptionAltered,
  trailCheck,
];

/** What differs, in the order in which it is made: permissions and receivers before senders. */
export function diff(look: Look): Plan {
  const changes = [...topicChanges(look), ...ruleChanges(look), ...trailChanges(look), ...notificationChanges(look)];
  const findings = checks.flatMap((check) => check(look) ?? []);
  return {
    spec: look.spec,
    changes,
    findings: [...sharedFindings(look), ...findings],
    foreign: changes.flatMap(({ touches }) => touches),
    token: tokenOf(look),
  };
}

/**
 * What a removal deletes, in order: the notification or the rule first, so that nothing new is sent. Shared parts stay, and so do
 * parts that other owners changed. Missing parts are not listed.
 */
export function removal(look: Look, remains: Remains): { readonly changes: readonly Change[]; readonly kept: readonly Kept[] } {
  const { still = NOTHING } = remains;
  const isStill = (idOf: (of: Desired) => string | undefined): boolean => idOf(still) === idOf(look.desired);
  const steps = [
    isStill(({ entry }) => entry?.id) ? undefined : notificationRemoval(look),
    isStill(({ rule }) => rule?.arn) ? undefined : ruleRemoval(look),
    still.eventBridge === true ? undefined : keptSwitch(look),
    isStill(({ trailArn }) => trailArn) ? undefined : trailRemoval(look, remains),
    ...topicRemovals(look, remains),
  ];
  return {
    changes: steps.flatMap((step) => (step === undefined || 'reason' in step ? [] : [step])),
    kept: steps.flatMap((step) => (step !== undefined && 'reason' in step ? [step] : [])),
  };
}

/** The token's length: 64 bits cannot be guessed. */
const TOKEN_LENGTH = 16;

/** The token excludes what Tally's own apply writes, so that it stays valid until everything is applied. */
function tokenOf(look: Look): string {
  const { spec, desired: wanted, observed } = look;
  const { notification, queues } = observed;
  const { all: sids } = sidsOf(spec);
  const statementsIn = (policy: string | undefined) => foreignStatements(parsePolicy(policy), sids);
  const topic = existing(observed.topic);
  const isNamed = topic !== undefined && wanted.topic !== undefined && spec.topicArn !== undefined;
  const theirs = {
    entries: notification.ok ? foreignEntries(notification.configuration, spec).map(canonicalEntry) : notification.xml,
    // the source eventbridge switches it on itself
    eventBridge: notification.ok && spec.source !== 'eventbridge' && notification.configuration.eventBridge,
    selectors: theirSelectors(look),
    statements: queues.map(({ arn, attributes }) => [arn, statementsIn(attributes['Policy'])]),
    topic: isNamed ? statementsIn(topic.attributes['Policy']) : undefined,
  };
  return fingerprintOf({ spec, theirs }).slice(0, TOKEN_LENGTH);
}

interface Wrong {
  readonly name: string;
  /** Whether it keeps events from arriving. Otherwise, only events that are undeliverable or unreceived for days are lost. */
  readonly isNeeded: boolean;
}

/** The attributes that decide whether an event reaches the bucket queue. */
const NEEDED: ReadonlySet<string> = new Set(['Policy', 'FilterPolicy', 'RawMessageDelivery']);
/** SQS's default retention: an outage over a long weekend loses nothing. */
const RETENTION_MIN_S = 345_600;

/**
 * Checks what all buckets share, by the same comparison as `tally setup`. No bucket's apply fixes it: if a difference keeps events from
 * arriving, it stops the plan; otherwise it is advice.
 */
function sharedFindings(look: Look): readonly Finding[] {
  const { spec } = look;
  const home = parseArn(spec.queueArn) ?? spec;
  const wrong = wrongParts(
    look,
    sharedParts(spec, { queues: { bucket: spec.queueArn, letters: spec.deadLetterArn ?? '' }, home, region: spec.region }),
  );
  const text = (found: readonly Wrong[]): string =>
    `something that all buckets share is missing or was changed: ${found.map(({ name }) => name).join(', ')}`;
  const [needed, others] = [wrong.filter(({ isNeeded }) => isNeeded), wrong.filter(({ isNeeded }) => !isNeeded)];
  const command = setupCommand(spec.region, home.region);
  const how = 'If the Terraform module created it, apply that again';
  const lost = 'events that cannot be delivered, or that wait for some days in an outage, are lost';
  return [
    ...(needed.length === 0
      ? []
      : [blocking('connect.not-set-up', text(needed), `events do not reach the bucket queue as they should. ${how}`, command)]),
    ...(others.length === 0 ? [] : [degraded('connect.set-up-unsafe', text(others), `${lost}. ${how}`, command)]),
  ];
}

function wrongParts(look: Look, parts: readonly SharedPart[]): readonly Wrong[] {
  const { spec } = look;
  const { queues, topic } = look.desired;
  const isWired = queues.length > 0;
  // the tags hold the installation's name, which every part has
  if (isWired && spec.registry === NOBODY.registry) return [{ name: `the tags of ${spec.queueArn}`, isNeeded: true }];
  const ofTopic = spec.topicArn === undefined ? topic?.arn : undefined;
  const ours = new Set([spec.queueArn, spec.deadLetterArn, ...queues, ofTopic]);
  return parts.filter(({ arn }) => ours.has(arn)).flatMap((part) => wrongOf(look, part, isWired));
}

function wrongOf(look: Look, part: SharedPart, isWired: boolean): readonly Wrong[] {
  const isLetters = part.kind === 'queue' && part.arn !== look.spec.queueArn;
  const attributes = foundOf(look, part);
  if (attributes === undefined) return [{ name: nameOf(part), isNeeded: !isLetters }];
  return differencesOf(part, { attributes }).flatMap(({ attribute }) => {
    const isNeeded = NEEDED.has(attribute);
    const isUnsafe = attribute === 'RedrivePolicy' ? lacksLetters(look, part) : !isLetters && isShort(attribute, attributes[attribute]);
    // wiring that is wholly a person's needs none of it
    if (isNeeded ? !isWired : !isUnsafe) return [];
    return [{ name: `${attribute} of ${nameOf(part)}`, isNeeded: isNeeded && !isLetters }];
  });
}

function foundOf({ observed }: Look, { kind, arn }: SharedPart): Attributes | undefined {
  switch (kind) {
    case 'queue':
      return queueIn(observed, arn)?.attributes;
    case 'topic':
      return existing(observed.topic)?.attributes;
    case 'subscription':
      return confirmed(observed.topic)?.attributes;
  }
}

/** With a dead-letter queue, the number of receives is the queue owner's choice. */
function lacksLetters({ spec }: Look, { kind }: SharedPart): boolean {
  return kind === 'subscription' || spec.deadLetterArn === undefined;
}

/** Servers other than SQS may not return the retention. */
function isShort(attribute: string, found: string | undefined): boolean {
  return attribute === 'MessageRetentionPeriod' && Number(found) < RETENTION_MIN_S;
}
