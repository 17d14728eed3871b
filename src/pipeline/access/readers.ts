/** What the caller of a request may read. It is read with each request, so that the removal of a grant counts from the next one on. */
import { LRUCache } from 'lru-cache';
import { PARTS_MAX, type Readable } from '../../domain/access/readable.ts';
import type { Actor, KeyActor, SessionActor } from '../../domain/identity/actor.ts';
import type { StoredGrants } from './policy.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** Resolves with what the actor may read at this moment. Throws the store's fault. */
export type ReadableBy = (actor: Actor, signal?: AbortSignal) => Promise<Readable>;

/** More users with too many grants are named again. */
const WARNED_MAX = 1_000;

interface ReaderDependencies {
  readonly grants: Pick<StoredGrants, 'current'>;
  readonly telemetry: Pick<Telemetry, 'warn'>;
  /** Whether every user reads everything, as TALLY_READERS says. */
  readonly everyoneReads: boolean;
}

/** Creates the function. Administrators read everything, and so does a program on this machine where no one logs in. */
export function createReadableBy({ grants, telemetry, everyoneReads }: ReaderDependencies): ReadableBy {
  /** Users of whom the log names this already: once in the life of a process. */
  const warned = new LRUCache<string, true>({ max: WARNED_MAX });

  async function byGrants(actor: SessionActor | KeyActor, signal: AbortSignal | undefined): Promise<Readable> {
    const { email, isUnverified, groups } = actor;
    const { readable, tooMany } = (await grants.current(signal)).readableBy({ email, emailVerified: isUnverified !== true, groups });
    if (tooMany && !warned.has(actor.userId)) {
      warned.set(actor.userId, true);
      telemetry.warn('a user reads nothing, because of too many separate parts that are granted', {
        user_id: actor.userId,
        email,
        parts_max: PARTS_MAX,
      });
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
