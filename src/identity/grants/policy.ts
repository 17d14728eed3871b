/** The stored policy: one record with all grants, which is read with each request, so that a change takes effect everywhere at the next one. */
import type { Grant } from './grant.rules.ts';
import { GRANTS_MAX, inOrder, policyOf, type Policy } from './policy.rules.ts';
import { RequestError } from '../../base/request-error.ts';
import type { WithPorts } from '../../store/store.ts';
import { readRecord, updateRecord } from '../../store/stored.ts';
import { PARTS_MAX, type Readable } from '../../store/readable.rules.ts';
import type { Actor, KeyActor, SessionActor } from '../../base/actor.ts';
import type { Telemetry } from '../../process/telemetry.ts';
import { refs } from '../refs.ts';

export interface StoredGrants {
  /** The policy of this moment. Throws the store's fault. */
  current(signal?: AbortSignal): Promise<Policy>;
  /** Stores what `change` makes of the grants; the same array: nothing changes. Throws `grant.limit` and as updateRecord does. */
  change(change: (grants: readonly Grant[]) => readonly Grant[]): Promise<void>;
}

export function createStoredGrants({ state }: WithPorts<'state'>): StoredGrants {
  return {
    current: async (signal) => policyOf((await readRecord(state, refs.access, signal))?.grants ?? []),
    async change(change) {
      await updateRecord(
        state,
        refs.access,
        (stored) => {
          const before = stored?.grants ?? [];
          const after = change(before);
          if (after === before) return stored;
          if (after.length > GRANTS_MAX) throw tooMany();
          return { grants: inOrder(after) };
        },
        'soon',
      );
    },
  };
}

function tooMany(): RequestError {
  return new RequestError(
    'grant.limit',
    `there may be at most ${GRANTS_MAX} grants: grant to groups instead of people, or shorter prefixes`,
  );
}

/** Resolves with what the actor may read at this moment. Throws the store's fault. */
export type ReadableBy = (actor: Actor, signal?: AbortSignal) => Promise<Readable>;

interface ReaderDependencies {
  readonly grants: Pick<StoredGrants, 'current'>;
  readonly telemetry: Pick<Telemetry, 'warnOnce'>;
  /** Whether every user reads everything, as TALLY_READERS says. */
  readonly everyoneReads: boolean;
}

/** Creates the function. Administrators read everything, and so does a program on this machine where no one logs in. */
export function createReadableBy({ grants, telemetry, everyoneReads }: ReaderDependencies): ReadableBy {
  async function byGrants(actor: SessionActor | KeyActor, signal: AbortSignal | undefined): Promise<Readable> {
    const { email, isUnverified, groups } = actor;
    const person = { email, emailVerified: isUnverified !== true, groups };
    const { readable, tooMany: isTooMany } = (await grants.current(signal)).readableBy(person);
    if (isTooMany) {
      const facts = { user_id: actor.userId, email, parts_max: PARTS_MAX };
      telemetry.warnOnce('a user reads nothing, because of too many separate parts that are granted', actor.userId, facts);
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

/** Whether the actor sees what is for administrators only. */
export function seesAll(actor: Actor): boolean {
  return actor.kind === 'local' || actor.role === 'admin';
}
