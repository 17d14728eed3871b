/** Checks of the audit trail. */
import { type Check } from './finding.ts';

export const trailUnchecked: Check = ({ wish, wiring: { selector } }) =>
  selector === undefined
    ? undefined
    : {
        code: 'connect.trail-unchecked',
        severity: 'degraded',
        what: `a trail must record the data events of ${wish.bucket}, which Tally does not read`,
        why: 'the rule matches nothing without them. PostObject and RenameObject are not among the five operations',
        fix: JSON.stringify(selector),
        blocks: false,
      };
