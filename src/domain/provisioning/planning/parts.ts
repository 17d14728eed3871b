/** The parts of a connection as its record has them, and plans as people read them. */
import { differenceOf } from '../../difference.ts';
import { fingerprintOf } from '../canonical.ts';
import type { ConnectionPart } from '../connection.ts';
import { sdkConfiguration } from '../notification.ts';
import { selectorsInput } from '../trail.ts';
import type { Change } from './plan.ts';

/** What is there before a change and after it, as plain JSON. `undefined`: nothing. */
export function documentsOf(change: Change): { readonly before?: unknown; readonly after: unknown } {
  switch (change.part) {
    case 'topic':
      return { after: { TopicArn: change.name } };
    case 'queue':
      return { after: { QueueArn: change.name } };
    case 'topic-policy':
    case 'queue-policy':
      return { before: change.before, after: change.after };
    case 'subscription':
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

/** The parts after some changes: those of before, with each changed one in place of its earlier form. */
export function partsAfter(parts: readonly ConnectionPart[], changes: readonly Change[]): ConnectionPart[] {
  const byName = new Map(parts.map((part) => [`${part.kind} ${part.arn}`, part]));
  for (const change of changes) {
    const id = `${change.part} ${change.name}`;
    byName.set(id, {
      kind: change.part,
      arn: change.name,
      // a policy and a configuration are whole documents, of which one statement or entry is ours
      createdByUs: isMadeAgain(change) || (byName.get(id)?.createdByUs ?? change.action === 'create'),
      fingerprint: fingerprintOf(documentsOf(change).after),
    });
  }
  return [...byName.values()];
}

/** A subscription that others made, and that is gone, is Tally's from now on. */
function isMadeAgain({ part, action }: Change): boolean {
  return part === 'subscription' && action === 'create';
}

const SIGNS: Readonly<Record<Change['action'], string>> = { create: '+', change: '~' };

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
