/**
 * The stored policy: one record with all grants. A process caches it and checks the record's version on each request, so that a
 * change takes effect everywhere at the next request.
 */
import { granteesMatching, parseScope, formatScope, type Grant, type Reader } from './grant.rules.ts';
import { GRANTS_MAX, inOrder, policyOf, type Policy } from './policy.rules.ts';
import { RequestError } from '../../base/request-error.ts';
import type { StateVersion, WithPorts } from '../../store/store.ts';
import { parseEntry, updateRecord, readEntries, readPage } from '../../store/stored.ts';
import { PARTS_MAX, type Readable, type BucketPart } from '../../store/readable.rules.ts';
import { type Actor, type KeyActor, type SessionActor, nameOfActor } from '../../base/actor.ts';
import type { Telemetry } from '../../process/telemetry.ts';
import { refs } from '../refs.ts';
import type { AccessView, ReaderView } from '../../registry/contract/access.ts';
import type { CheckedOperations } from '../../registry/contract/contract.ts';
import { timeOf } from '../../registry/contract/fields.ts';
import type { OwnAccess } from '../../registry/contract/login.ts';
import { compareKeys } from '../../base/key-order.ts';
import { decodeCursor } from '../../base/cursor.ts';
import { knownUserOf, type KnownUser, type LoginRules } from '../claims.rules.ts';
import { userRecordSchema } from '../user.rules.ts';
import type { Audited } from '../audit.ts';
import { readUser } from '../users.ts';

/** After this time, the policy is read again: a state index that was deleted and restored may repeat its versions. */
const KNOWN_MAX_MS = 60_000;

interface StoredGrants {
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

// ── administrators' operations on grants, and the two questions: who may read this, and what may this person read? ──

type AccessOperations = Pick<CheckedOperations, 'listGrants' | 'addGrant' | 'removeGrant' | 'listReaders' | 'getAccess'>;

/** Resolves with what the caller may read. Throws the store's fault. */
export type ReadOwnAccess = (actor: Actor, signal: AbortSignal) => Promise<OwnAccess>;

interface AccessDependencies extends WithPorts<'state' | 'clock'> {
  readonly grants: StoredGrants;
  readonly rules: LoginRules;
  readonly audited: Audited;
  readonly everyoneReads: boolean;
}

export function createAccessOperations({ grants, state, rules, clock, audited, everyoneReads }: AccessDependencies): AccessOperations {
  return {
    async listGrants({ query: { who, where, limit, cursor } }, { signal }) {
      const policy = await grants.current(signal);
      const found = (where === undefined ? policy.grants : grantsAt(policy, where)).filter(
        (grant) => who === undefined || grant.who === who,
      );
      const page = await readPage({
        limit,
        after: decodeCursor(cursor, 2),
        fetch: async (count, after) =>
          found.filter((grant) => after === undefined || isAfter(grant, after[0] ?? '', after[1] ?? '')).slice(0, count),
        positionOf: (grant: Grant) => [grant.who, grant.where],
      });
      const readers = everyoneReads ? ('everyone' as const) : ('granted' as const);
      return { ...page, readers };
    },
    addGrant: audited('GrantAdd', async ({ body: { who, where } }, { actor }): Promise<Grant> => {
      const added: Grant = { who, where, granted_by: nameOfActor(actor), created_at: timeOf(clock.nowMs()) };
      let stored = added;
      await grants.change((before) => {
        const same = before.find((grant) => isSame(grant, added));
        stored = same ?? added;
        return same === undefined ? [...before, added] : before;
      });
      return stored;
    }),
    removeGrant: audited('GrantRemove', async ({ body: { who, where } }): Promise<Grant> => {
      let removed: Grant | undefined;
      await grants.change((before) => {
        removed = before.find((grant) => isSame(grant, { who, where }));
        return removed === undefined ? before : before.filter((grant) => grant !== removed);
      });
      if (removed === undefined) {
        throw new RequestError('grant.not-found', `${where} is not granted to ${who}; \`tally admin grants list\` shows what is`);
      }
      return removed;
    }),
    async listReaders({ query: { where, limit, cursor } }, { signal }) {
      const policy = await grants.current(signal);
      const at = grantsAt(policy, where);
      const page = await readEntries(state, 'user', { limit, cursor }, signal);
      const people = page.items
        .flatMap(({ record }) => userRecordSchema.safeParse(record).data ?? [])
        .map((user) => knownUserOf(rules, user));
      const readers = people.filter(({ isAllowed }) => isAllowed).flatMap((user) => readerOf(user, policy, at));
      return { items: readers, ...(page.next !== undefined && { next: page.next }) };
    },
    async getAccess({ params: { id } }, { signal }) {
      const [policy, user] = await Promise.all([grants.current(signal), readUser({ state, rules }, id, signal)]);
      if (user === undefined) throw new RequestError('user.not-found', `no user with the id ${id} has logged in`);
      return accessOf(user, policy);
    },
  };

  function readerOf(user: KnownUser, policy: Policy, at: readonly Grant[]): readonly ReaderView[] {
    const grantees = new Set(granteesMatching(personOf(user)));
    const by = at.filter(({ who }) => grantees.has(who));
    const reads = user.role === 'admin' || everyoneReads || (by.length > 0 && !policy.readableBy(personOf(user)).tooMany);
    const { userId, email, role } = user;
    return reads ? [{ user_id: userId, email, role, by }] : [];
  }

  function accessOf(user: KnownUser, policy: Policy): AccessView {
    const { readable, tooMany } = policy.readableBy(personOf(user));
    const { userId, email, role, groups = [], groupsLeftOut = false } = user;
    const because = role === 'admin' ? 'administrator' : everyoneReads ? 'readers' : tooMany ? 'too_many' : 'grants';
    const reads = textsOf(because === 'administrator' || because === 'readers' ? 'everything' : readable);
    return {
      user_id: userId,
      email,
      role,
      reads,
      because,
      grants: policy.grantsOf(personOf(user)),
      groups,
      groups_left_out: groupsLeftOut,
    };
  }
}

/** What the caller may read. Throws the store's fault. */
export async function ownAccess(readableBy: ReadableBy, actor: Actor, signal: AbortSignal): Promise<OwnAccess> {
  const reads = textsOf(await readableBy(actor, signal));
  return reads.length > 0 || actor.kind === 'local' ? { reads } : { reads, advice: adviceTo(actor.userId) };
}

/** Why someone can read nothing, and whom to ask. */
function adviceTo(userId: string): string {
  return `No grant applies to you. Groups and roles from the identity provider lapse some time after a login, so log in again. If that doesn't help, ask an administrator of this registry for a grant; \`tally admin access --user ${userId}\` says what you can read, and why.`;
}

function textsOf(readable: Readable): readonly string[] {
  return readable === 'everything' ? ['*'] : readable.map(formatScope);
}

function personOf({ email, emailVerified, groups }: KnownUser): Reader {
  return { email, emailVerified, groups };
}

function grantsAt(policy: Policy, where: string): readonly Grant[] {
  const part = placeOf(where);
  return part === 'everything' ? policy.grants : policy.grantsOn(part);
}

/** What a checked text means. */
function placeOf(where: string): BucketPart | 'everything' {
  const part = parseScope(where);
  if (part !== 'everything' && 'mistake' in part) throw new RequestError('request.invalid', `where: ${part.mistake}`);
  return part;
}

function isSame(a: Pick<Grant, 'who' | 'where'>, b: Pick<Grant, 'who' | 'where'>): boolean {
  return a.who === b.who && a.where === b.where;
}

/** Whether a grant comes after a position in the policy's order. */
function isAfter(grant: Grant, who: string, where: string): boolean {
  return compareKeys(grant.who, who) > 0 || (grant.who === who && compareKeys(grant.where, where) > 0);
}
