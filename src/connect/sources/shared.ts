/**
 * Checks what all buckets share, by the same comparison as `tally setup`. No bucket's apply fixes it: if a difference keeps events from
 * arriving, it stops the plan; otherwise it is advice.
 */
import { blocking, degraded, type Finding } from '../finding.rules.ts';
import { NOBODY, parseArn } from '../names.rules.ts';
import type { Attributes } from '../plan.rules.ts';
import { confirmed, differencesOf, nameOf, setupCommand, sharedParts, type SharedPart } from '../shared.rules.ts';
import { existing, queueIn, type Look } from './look.ts';

interface Wrong {
  readonly name: string;
  /** Whether it keeps events from arriving. Otherwise, only events that are undeliverable or unreceived for days are lost. */
  readonly isNeeded: boolean;
}

/** The attributes that decide whether an event reaches the bucket queue. */
const NEEDED: ReadonlySet<string> = new Set(['Policy', 'FilterPolicy', 'RawMessageDelivery']);
/** SQS's default retention: an outage over a long weekend loses nothing. */
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
  // the tags hold the installation's name, which every part has
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
