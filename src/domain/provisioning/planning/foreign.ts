/**
 * What the changes of a plan touch of others, as data: a person must have seen it before it is made. A subscription of the bucket
 * queue to a topic of others changes nothing for them.
 */
import { existing, NO_LETTERS, type Facts } from '../facts.ts';
import { foreignEntries } from '../notification.ts';
import { canonicalStatement } from '../policy.ts';
import { foreignSelectors, selectorText } from '../trail.ts';
import type { Change } from './plan.ts';

export const touchedKinds = ['destination', 'switch', 'subscription', 'topic-policy', 'readers', 'trail'] as const;

export interface Touched {
  readonly kind: (typeof touchedKinds)[number];
  /** Of what belongs to others. */
  readonly arn: string;
  /** What is there. */
  readonly before?: unknown;
  /** What it becomes, or gets. */
  readonly after: unknown;
}

export function foreignOf(facts: Facts, changes: readonly Change[]): readonly Touched[] {
  const { wish, wiring } = facts;
  const isSentMore = wiring.topic?.isForeign === true && changes.some(({ part }) => part === 'rule' || part === 'target');
  return [
    ...changes.flatMap((change) => touchedBy(facts, change)),
    ...(isSentMore ? readersOf(facts, wiring.topic?.arn ?? '', wish.bucket) : []),
  ];
}

function touchedBy({ wish, wiring }: Facts, change: Change): readonly Touched[] {
  switch (change.part) {
    case 'notification': {
      const { before, after } = change;
      const arn = `arn:${wish.partition}:s3:::${wish.bucket}`;
      // what others write at the same moment would be lost, and rules of others may match all events of S3
      return [
        ...foreignEntries(before, wish).map((entry): Touched => ({ kind: 'destination', arn: entry.arn, after: 's3:TestEvent' })),
        ...(before.eventBridge === after.eventBridge ? [] : [{ kind: 'switch', arn, before: false, after: true } as const]),
      ];
    }
    case 'subscription': {
      if (change.action !== 'change') return [];
      const { name: arn, before, after } = change;
      // what Tally does not set was set by others, on purpose perhaps
      const set = Object.entries(before).filter(([, value]) => value !== NO_LETTERS);
      return set.map(([name, value]) => ({ kind: 'subscription', arn, before: { [name]: value }, after: { [name]: after[name] } }));
    }
    case 'topic-policy': {
      if (wiring.topic?.isForeign !== true) return [];
      const known = new Set(change.before.Statement.map(canonicalStatement));
      const after = change.after.Statement.filter((statement) => !known.has(canonicalStatement(statement)));
      return [{ kind: 'topic-policy', arn: change.name, after }];
    }
    case 'trail': {
      const theirs = foreignSelectors(change.before, wish);
      return theirs.length === 0 ? [] : [{ kind: 'trail', arn: change.name, before: theirs, after: theirs }];
    }
    case 'queue-policy':
    case 'rule':
    case 'target':
      return [];
  }
}

/** Who else reads the topic that was named: all subscribers get what the rule sends. */
function readersOf({ observed: { topic, notification } }: Facts, arn: string, bucket: string): readonly Touched[] {
  const subscriptions = existing(topic)?.otherSubscriptions ?? 0;
  const entries = notification.ok ? notification.configuration.entries.filter((entry) => entry.arn === arn) : [];
  const after = `the records of the rule of ${bucket}`;
  return [
    ...(subscriptions === 0 ? [] : [{ kind: 'readers', arn, before: { subscriptions }, after } as const]),
    ...entries.map(({ id }) => ({ kind: 'readers', arn, before: { notification: id }, after }) as const),
  ];
}

/** As people read it. */
export function touchedText({ kind, arn, before, after }: Touched): string {
  switch (kind) {
    case 'destination':
      return `${arn} gets an s3:TestEvent`;
    case 'switch':
      return 'all events of the bucket also go to EventBridge from then on';
    case 'subscription':
      return `the subscription ${arn} has ${JSON.stringify(before)}, which others have set, and gets ${JSON.stringify(after)}`;
    case 'topic-policy':
      return `the policy of ${arn}, which Tally did not make, gets ${JSON.stringify(after)}`;
    case 'readers':
      return `all readers of ${arn}, which has ${JSON.stringify(before)}, also get ${String(after)}`;
    case 'trail':
      return `all selectors of ${arn} are written again: ${Array.isArray(before) ? before.map(selectorText).join(', ') : ''}`;
  }
}
