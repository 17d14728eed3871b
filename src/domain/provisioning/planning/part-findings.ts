/**
 * What is missing in AWS, or is not as Tally makes it: each change that an apply would make now is a finding. So the doctor, a plan
 * and an apply can never disagree.
 */
import { isInputRight } from '../facts.ts';
import type { Change, Plan } from './plan.ts';
import type { Wish } from '../wiring.ts';
import { broken, degraded, type Finding } from '../checks/finding.ts';

interface Part {
  readonly code: string;
  readonly name: string;
  /** What follows from it. */
  readonly why: string;
}

const PARTS: Readonly<Record<Change['part'], Part>> = {
  'topic-policy': { code: 'connect.topic-policy', name: "Tally's statement in the policy of", why: 'nothing may publish to the topic' },
  'queue-policy': { code: 'connect.queue-policy', name: "Tally's statement in the policy of", why: 'the queue refuses what is sent to it' },
  subscription: { code: 'connect.subscription', name: 'the subscription', why: 'what is published to the topic does not reach Tally' },
  rule: { code: 'connect.rule', name: 'the rule', why: 'not every event of the bucket reaches the queue' },
  target: { code: 'connect.target', name: "Tally's target of the rule", why: 'the rule does not send what Tally reads' },
  trail: {
    code: 'connect.trail',
    name: 'the bucket in the selectors of',
    why: 'the trail does not record the bucket, so the rule matches nothing',
  },
  notification: {
    code: 'connect.notification',
    name: "Tally's part in the notification configuration of",
    why: 'S3 does not send every event of the bucket',
  },
};

/** A person must have seen what an apply touches of others, and only a plan shows that. */
export function healingCommand({ wish: { bucket }, foreign }: Pick<Plan, 'wish' | 'foreign'>): string {
  return `tally bucket add ${bucket}${foreign.length === 0 ? '' : ' --plan'}`;
}

export function partFindings(plan: Pick<Plan, 'wish' | 'changes' | 'foreign'>): readonly Finding[] {
  return plan.changes.map((change) => {
    const { code, name, why } = PARTS[change.part];
    const what = `${name} ${change.name} ${isMissing(change) ? 'is missing' : 'was changed'}`;
    return (isOfLetters(plan.wish, change) ? degraded : broken)(code, what, why, healingCommand(plan));
  });
}

/** A policy and a configuration are there, and Tally's part may be missing in them. */
function isMissing({ part, action }: Change): boolean {
  return action === 'create' || part === 'topic-policy' || part === 'queue-policy' || part === 'trail';
}

/** Only what cannot be delivered is lost. */
function isOfLetters({ queueArn }: Wish, change: Change): boolean {
  switch (change.part) {
    case 'queue-policy':
      return change.name !== queueArn;
    case 'subscription':
      return change.action === 'change' && change.before['FilterPolicy'] === undefined;
    case 'target': {
      const { before: is, rule } = change;
      return is !== undefined && is.arn === rule.target.arn && is.roleArn === undefined && isInputRight(rule.target, is);
    }
    case 'topic-policy':
    case 'rule':
    case 'trail':
    case 'notification':
      return false;
  }
}

/** A bucket for which nothing was made yet has one finding instead of one for each part. */
export function notMade(plan: Pick<Plan, 'wish' | 'changes' | 'foreign'>): readonly Finding[] {
  if (plan.changes.length === 0) return [];
  return [
    broken(
      'connect.not-made',
      `nothing leads the events of ${plan.wish.bucket} to the bucket queue yet. To be made: ${plan.changes.map(({ part, name }) => `${part} ${name}`).join(', ')}`,
      'no event of the bucket arrives until it is made',
      healingCommand(plan),
    ),
  ];
}
