/**
 * What a plan finds of a bucket for which nothing was made yet. That its parts are missing is no news then: it is one finding,
 * with the one command that makes them. What else is wrong stays as it is, and what blocks stands without that command, which it would refuse.
 */
import type { Finding } from '../checks/finding.ts';
import type { Observed } from '../observed.ts';
import type { Plan } from './plan.ts';

/** What is found where a part does not exist. */
const MISSING: ReadonlySet<string> = new Set([
  'connect.topic-missing',
  'connect.undelivered-missing',
  'connect.topic-policy',
  'connect.queue-policy',
  'connect.subscription-missing',
  'connect.rule-missing',
  'connect.notification-missing',
  'connect.eventbridge-off',
  'connect.trail-selector',
]);

export interface Unmade {
  readonly observed: Observed;
  /** The command that makes the parts. */
  readonly command: string;
  /** `note` for a plan, which comes before they are made. */
  readonly severity: 'note' | 'broken';
}

/** The findings with one instead of those about parts that are not made yet. Only for a bucket without a record of what was made. */
export function withNotMade(plan: Pick<Plan, 'wish' | 'wiring' | 'changes' | 'findings'>, unmade: Unmade): readonly Finding[] {
  if (!isUnmade(plan, unmade.observed)) return plan.findings;
  const others = plan.findings.filter(({ code, blocks }) => blocks || !MISSING.has(code));
  const parts = plan.changes.map(({ part, name }) => `${part} ${name}`);
  if (parts.length === 0 || others.some(({ blocks, severity }) => blocks && severity === 'broken')) return others;
  const finding: Finding = {
    code: 'connect.not-made',
    severity: unmade.severity,
    what: `nothing leads the events of ${plan.wish.bucket} to the bucket queue yet. To be made: ${parts.join(', ')}`,
    why: 'no event of the bucket arrives until it is made',
    fix: unmade.command,
    blocks: false,
  };
  return [...others, finding];
}

/** Whether nothing that is the bucket's own exists: topics and policies serve other buckets as well. */
function isUnmade({ wiring }: Pick<Plan, 'wiring'>, { notification, rule, handMadeRule, subscription }: Observed): boolean {
  const { entry } = wiring;
  if (entry !== undefined) return notification.ok && notification.configuration.entries.every(({ id }) => id !== entry.id);
  if (wiring.rule !== undefined) return rule === 'absent' && handMadeRule === undefined;
  return subscription === 'absent';
}
