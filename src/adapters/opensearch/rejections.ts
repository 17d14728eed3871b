/**
 * Decides whether a refused document is at fault, or its index. A pipeline or a foreign mapping can make an index refuse
 * every document with the errors of a bad document. So an error about a document counts only while its index accepts others.
 */
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { BulkAction, BulkVerdict } from './bulk.ts';

/** How long an accepted document shows that its index accepts documents. */
const ACCEPTING_MS = 60_000;
/** Documents that may be refused in a row while the index counts as accepting: after a change for the worse no more than these are dead-lettered. */
const REFUSED_IN_A_ROW_MAX = 3;

interface Witness {
  acceptedAtMs: number;
  refusedSince: number;
}

/**
 * Creates the judge of the verdicts of each request. It turns `index.rejected` into `bucket.index-misconfigured` where
 * nothing shows that the index accepts other documents: none in this request, and none within a minute or more than three
 * refused since. It remembers one entry per index.
 */
export function createRejectionJudge(clock: Pick<Clock, 'monotonicMs'>) {
  const witnesses = new Map<string, Witness>();

  function isAccepting(alias: string, nowMs: number): boolean {
    const witness = witnesses.get(alias);
    if (witness === undefined || nowMs - witness.acceptedAtMs >= ACCEPTING_MS) return false;
    return witness.refusedSince <= REFUSED_IN_A_ROW_MAX;
  }

  return function judge(actions: readonly BulkAction[], verdicts: readonly BulkVerdict[]): readonly BulkVerdict[] {
    const nowMs = clock.monotonicMs();
    const acceptedIn = acceptedAliases(actions, verdicts);
    for (const alias of acceptedIn) witnesses.set(alias, { acceptedAtMs: nowMs, refusedSince: 0 });
    if (!verdicts.some(isRejection)) return verdicts;
    return verdicts.map((verdict, at) => {
      const alias = actions[at]?.alias ?? '';
      if (!isRejection(verdict) || acceptedIn.has(alias)) return verdict;
      const witness = witnesses.get(alias);
      if (witness !== undefined) witness.refusedSince += 1;
      return isAccepting(alias, nowMs) ? verdict : { ...verdict, code: 'bucket.index-misconfigured' };
    });
  };
}

/** By a loop: almost all requests are about one index, and this is done for each document of a first index. */
function acceptedAliases(actions: readonly BulkAction[], verdicts: readonly BulkVerdict[]): ReadonlySet<string> {
  const aliases = new Set<string>();
  let last: string | undefined;
  for (const [at, { alias }] of actions.entries()) {
    if (alias === last || verdicts[at]?.kind !== 'written') continue;
    aliases.add(alias);
    last = alias;
  }
  return aliases;
}

function isRejection(verdict: BulkVerdict): verdict is Extract<BulkVerdict, { readonly kind: 'fault' }> {
  return verdict.kind === 'fault' && verdict.code === 'index.rejected';
}
