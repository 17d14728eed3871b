/** Plans as people read them. */
import { differenceOf } from '../../difference.ts';
import { sdkConfiguration } from '../notification.ts';
import { selectorsInput } from '../trail.ts';
import type { Change } from './plan.ts';

/** What is there before a change and after it, as plain JSON. `undefined`: nothing. */
export function documentsOf(change: Change): { readonly before?: unknown; readonly after: unknown } {
  switch (change.part) {
    case 'topic-policy':
    case 'queue-policy':
      return { before: change.before, after: change.after };
    case 'subscription':
      if (change.action === 'remove') return { after: undefined };
      return change.action === 'create' ? { after: change.subscription } : { before: change.before, after: change.after };
    case 'rule':
      return { ...(change.before && { before: ruleOf(change.before) }), after: { EventPattern: change.rule.pattern, State: 'ENABLED' } };
    case 'target':
      return { ...(change.before && { before: change.before }), after: change.rule.target };
    case 'trail':
      return { before: selectorsInput(change.before), after: selectorsInput(change.after) };
    case 'notification':
      return { before: sdkConfiguration(change.before), after: sdkConfiguration(change.after) };
  }
}

function ruleOf({ pattern, isEnabled }: { readonly pattern?: string; readonly isEnabled: boolean }): unknown {
  return { EventPattern: pattern, State: isEnabled ? 'ENABLED' : 'DISABLED' };
}

const SIGNS: Readonly<Record<Change['action'], string>> = { create: '+', change: '~', remove: '-' };

/** A change as people read it: what it writes to, and the difference below. */
export function changeText(
  { action, part, name }: { readonly action: Change['action']; readonly part: string; readonly name: string },
  before: unknown,
  after: unknown,
): string {
  const title = `${SIGNS[action]} ${part} ${name}`;
  return [title, ...differenceOf(before, after).map((line) => `    ${line}`)].join('\n');
}

/** All changes of a plan as people read them. */
export function changesText(changes: readonly Change[]): string {
  return changes
    .map((change) => {
      const { before, after } = documentsOf(change);
      return changeText(change, before, after);
    })
    .join('\n\n');
}
