/**
 * The stored policy: one record with all grants. A process caches it and checks the record's version on each request, so that a
 * change takes effect everywhere at the next request.
 */
import type { Grant } from './grant.rules.ts';
import { GRANTS_MAX, inOrder, policyOf, type Policy } from './policy.rules.ts';
import { RequestError } from '../../base/request-error.ts';
import type { StateVersion, WithPorts } from '../../store/store.ts';
import { parseEntry, updateRecord } from '../../store/stored.ts';
import { PARTS_MAX, type Readable } from '../../store/readable.rules.ts';
import type { Actor, KeyActor, SessionActor } from '../../base/actor.ts';
import type { Telemetry } from '../../process/telemetry.ts';
import { refs } from '../refs.ts';

/** After this time, the policy is read again: a state index that was deleted and restored may repeat its versions. */
const KNOWN_MAX_MS = 60_000;

export interface StoredGrants {
  /** The present policy. Throws the store's fault. */
  current(signal?: AbortSignal): Promise<Policy>;
  /** Stores what `change` makes of the grants; the same array means no change. Throws `grant.limit` and what updateRecord throws. */
  change(change: (grants: readonly Grant[]) => readonly Grant[]): Promise<void>;
}

export function createStoredGrants({ state, clock }: WithPorts<'state' | 'clock'>): StoredGrants {
  let known: { readonly version: StateVersion | undefined; readonly readAtMs: number; readonly policy: Policy } | undefined;

  async function read(signal: AbortSignal | undefined): Promise<Policy> {
    const readAtMs = clock.monotonicMs();
    const entry = await state.get(refs.access.id, signal);
    const policy = policyOf(entry === undefined ? [] : parseEntry(entry, refs.access.schema).grants);
    known = { version: entry?.version, readAtMs, policy };
    return policy;
  }

  return {
    async current(signal) {
      if (known === undefined || clock.monotonicMs() - known.readAtMs >= KNOWN_MAX_MS) return read(signal);
      const { version, policy } = known;
      return (await state.version(refs.access.id, signal)) === version ? policy : read(signal);
    },
    async change(change) {
      await updateRecord(
        state,
        refs.access,
        (stored) => {
          const before = stored?.grants ?? [];
          const after = change(before);
          if (after === before) return stored;
          requireRoom(after);
          return { grants: inOrder(after) };
        },
        'soon',
      );
    },
  };
}

function requireRoom(grants: readonly Grant[]): void {
  if (grants.length > GRANTS_MAX) {
    throw new RequestError(
      'grant.limit',
      `there are ${GRANTS_MAX} grants, which is the limit: grant to groups instead of people, or grant shorter prefixes`,
    );
  }
}

/** Resolves with what the actor may read at this moment. Throws the store's fault. */
export type ReadableBy = (actor: Actor, signal?: AbortSignal) => Promise<Readable>;

interface ReaderDependencies {
  readonly grants: Pick<StoredGrants, 'current'>;
  readonly telemetry: Pick<Telemetry, 'warnOnce'>;
  /** Whether every user reads everything, as TALLY_READERS says. */
  readonly everyoneReads: boolean;
}

/** Creates the function. Administrators read everything and, without logins, so do programs on this machine. */
export function createReadableBy({ grants, telemetry, everyoneReads }: ReaderDependencies): ReadableBy {
  async function byGrants(actor: SessionActor | KeyActor, signal: AbortSignal | undefined): Promise<Readable> {
    const { email, isUnverified, groups } = actor;
    const person = { email, emailVerified: isUnverified !== true, groups };
    const { readable, tooMany } = (await grants.current(signal)).readableBy(person);
    if (tooMany) {
      const facts = { user_id: actor.userId, email, parts_max: PARTS_MAX };
      telemetry.warnOnce('a user can read nothing, because too many separate parts are granted', actor.userId, facts);
    }
    return readable;
  }

  return async function readableBy(actor, signal) {
    switch (actor.kind) {
      case 'local':
        return 'everything';
      case 'session':
      case 'api_key':
        return actor.role === 'admin' || everyoneReads ? 'everything' : byGrants(actor, signal);
    }
  };
}

/** Whether the actor sees what only administrators may see. */
export function seesAll(actor: Actor): boolean {
  return actor.kind === 'local' || actor.role === 'admin';
}
