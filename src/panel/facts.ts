/**
 * What the panel knows of the contract besides its types. The build writes it into the script, so that the script contains neither zod
 * nor a second list of anything.
 */
import { contract } from '../registry/contract/contract.ts';
import { bucketStates } from '../records/bucket-status.ts';
import { bucketSources, enrichModes } from '../records/bucket.ts';
import { keyScopes } from '../base/actor.ts';
import { EXPIRES_IN_DAYS_DEFAULT, EXPIRES_IN_DAYS_MAX } from '../identity/api-key.rules.ts';
import { auditEvents } from '../base/audit.ts';
import { refusalOf, type Scope } from '../identity/authorise.rules.ts';

/** Who uses the panel: a person with a role or, if callers are not authenticated, a person on this machine. */
export const panelCallers = ['local', 'user', 'admin'] as const;
export type PanelCaller = (typeof panelCallers)[number];

export interface Facts {
  /** What each caller may do, by the contract's keys. */
  readonly permitted: Readonly<Record<PanelCaller, readonly string[]>>;
  readonly bucketSources: readonly (typeof bucketSources)[number][];
  readonly enrichModes: readonly (typeof enrichModes)[number][];
  /** Worst first. */
  readonly bucketStates: readonly (typeof bucketStates)[number][];
  readonly keyScopes: readonly (typeof keyScopes)[number][];
  readonly auditEvents: readonly (typeof auditEvents)[number][];
  readonly keyDays: { readonly usual: number; readonly max: number };
}

/** A caller on this machine has no keys and no session, so the control plane refuses these operations. */
const needSession: ReadonlySet<Scope> = new Set(['self', 'session']);

function permits(caller: PanelCaller, scope: Scope): boolean {
  if (caller === 'local') return !needSession.has(scope) && refusalOf(scope, { kind: 'local', host: '' }) === undefined;
  return refusalOf(scope, { kind: 'session', userId: '', email: '', sessionId: '', role: caller }) === undefined;
}

function permittedTo(caller: PanelCaller): readonly string[] {
  return Object.entries(contract)
    .filter(([, { scope }]) => permits(caller, scope))
    .map(([key]) => key);
}

export const facts: Facts = {
  permitted: { local: permittedTo('local'), user: permittedTo('user'), admin: permittedTo('admin') },
  bucketSources,
  enrichModes,
  bucketStates,
  keyScopes,
  auditEvents,
  keyDays: { usual: EXPIRES_IN_DAYS_DEFAULT, max: EXPIRES_IN_DAYS_MAX },
};
