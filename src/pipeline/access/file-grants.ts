/** The grants of TALLY_GRANTS_FILE: they exist as long as their lines do. */
import { textOfGrant, type FileGrant, type Grant } from '../../domain/access/grant.ts';
import type { Audited } from '../identity/audited.ts';
import { type Actor, nameOfActor } from '../../domain/identity/actor.ts';
import type { Clock } from '../ports/clock.ts';
import type { StoredGrants } from './policy.ts';

/** As many changes as an audit record names: those of a day's work, and not those of a first start with thousands of lines. */
const NAMED_MAX = 100;

interface FileGrantsDependencies {
  readonly grants: StoredGrants;
  readonly audited: Audited;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/**
 * Stores the grants of the file and removes those whose lines are gone, as one audited act; nothing is recorded if nothing
 * changes. A grant that a command made belongs to the file once a line has it. Throws `grant.limit` and the store's faults.
 */
export type ApplyFileGrants = (lines: readonly FileGrant[], actor: Actor, signal: AbortSignal) => Promise<void>;

export function createApplyFileGrants({ grants, audited, clock }: FileGrantsDependencies): ApplyFileGrants {
  return async function applyFileGrants(lines, actor, signal) {
    const wanted = new Map(lines.map((line) => [textOfGrant(line), line]));
    const grantedBy = nameOfActor(actor);

    /** The same array: nothing changes. */
    function changed(before: readonly Grant[]): readonly Grant[] {
      const kept = before.filter((grant) => (wanted.has(textOfGrant(grant)) ? grant.source === 'file' : grant.source === 'command'));
      const known = new Set(kept.map(textOfGrant));
      const added = [...wanted].filter(([text]) => !known.has(text));
      if (added.length === 0 && kept.length === before.length) return before;
      return [...kept, ...added.map(([, line]) => ({ ...line, grantedBy, createdAtMs: clock.nowMs(), source: 'file' as const }))];
    }

    const { grants: before } = await grants.current(signal);
    const after = changed(before);
    if (after === before) return;
    const act = audited('GrantsFile', async () => grants.change(changed));
    await act({ body: differenceOf(before, after) }, { actor, signal });
  };
}

/** What the audit record names of the change. */
function differenceOf(before: readonly Grant[], after: readonly Grant[]) {
  const isOfFile = ({ source }: Grant): boolean => source === 'file';
  const then = new Set(before.filter(isOfFile).map(textOfGrant));
  const now = new Set(after.filter(isOfFile).map(textOfGrant));
  const added = [...now.difference(then)];
  const removed = [...then.difference(now)];
  return {
    added: added.length,
    removed: removed.length,
    grants_added: added.slice(0, NAMED_MAX),
    grants_removed: removed.slice(0, NAMED_MAX),
  };
}
