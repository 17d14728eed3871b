/**
 * What all buckets share, by the same comparison as `tally setup` makes. No apply of a bucket heals it: what keeps events from arriving
 * stops a plan, and what else differs is advice.
 */
import { blocking, degraded, type Finding } from '../finding.rules.ts';
import { NOBODY, parseArn } from '../names.rules.ts';
import type { Attributes } from '../plan.rules.ts';
import { confirmed, differencesOf, nameOf, setupCommand, sharedParts, type SharedPart } from '../shared.rules.ts';
import { existing, queueIn, type Look } from './look.ts';

interface Wrong {
  readonly name: string;
  /** Events do not arrive. Else those are lost that cannot be delivered, or that nobody receives for days. */
  readonly isNeeded: boolean;
}

/** What decides whether an event reaches the bucket queue. */
const NEEDED: ReadonlySet<string> = new Set(['Policy', 'FilterPolicy', 'RawMessageDelivery']);
/** The retention that SQS gives a new queue: an outage over a long weekend loses nothing. */
const RETENTION_MIN_S = 345_600;

export function sharedFindings(look: Look): readonly Finding[] {
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
  const { spec, desired } = look;
  const isWired = desired.queues.length > 0;
  // every part bears the name of the installation
  if (isWired && spec.registry === NOBODY.registry) return [{ name: `the tags of ${spec.queueArn}`, isNeeded: true }];
  const ofTopic = spec.topicArn === undefined ? desired.topic?.arn : undefined;
  const ours = new Set([spec.queueArn, spec.deadLetterArn, ...desired.queues, ofTopic]);
  return parts.filter(({ arn }) => ours.has(arn)).flatMap((part) => wrongOf(look, part, isWired));
}

function wrongOf(look: Look, part: SharedPart, isWired: boolean): readonly Wrong[] {
  const isLetters = part.kind === 'queue' && part.arn !== look.spec.queueArn;
  const attributes = foundOf(look, part);
  if (attributes === undefined) return [{ name: nameOf(part), isNeeded: !isLetters }];
  return differencesOf(part, { attributes }).flatMap(({ attribute }) => {
    const isNeeded = NEEDED.has(attribute);
    const isUnsafe = attribute === 'RedrivePolicy' ? lacksLetters(look, part) : !isLetters && isShort(attribute, attributes[attribute]);
    // what a person has wired whole needs none of it
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

/** How often a queue lets messages be received is its owner's choice, if it has a dead-letter queue. */
function lacksLetters({ spec }: Look, { kind }: SharedPart): boolean {
  return kind === 'subscription' || spec.deadLetterArn === undefined;
}

/** Servers other than SQS may not say how long a queue keeps its messages. */
function isShort(attribute: string, found: string | undefined): boolean {
  return attribute === 'MessageRetentionPeriod' && Number(found) < RETENTION_MIN_S;
}
