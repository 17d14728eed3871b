/** Administrators' operations on grants, and the two questions: who may read this, and what may this person read? */
import type { AccessView, ReaderView } from '../../registry/contract/access.ts';
import type { CheckedOperations } from '../../registry/contract/contract.ts';
import { timeOf } from '../../registry/contract/fields.ts';
import type { OwnAccess } from '../../registry/contract/login.ts';
import { granteesMatching, parseScope, formatScope, type Grant, type Reader } from './grant.rules.ts';
import type { Policy } from './policy.rules.ts';
import type { BucketPart, Readable } from '../../store/readable.rules.ts';
import { compareKeys } from '../../base/key-order.ts';
import { decodeCursor } from '../../base/cursor.ts';
import { nameOfActor, type Actor } from '../../base/actor.ts';
import { knownUserOf, type KnownUser, type LoginRules } from '../login-rules.rules.ts';
import { userRecordSchema } from '../user.rules.ts';
import { RequestError } from '../../base/request-error.ts';
import type { Audited } from '../audited.ts';
import { readUser } from '../users.ts';
import { readEntries, readPage } from '../../store/stored.ts';
import type { StoredGrants, ReadableBy } from './policy.ts';
import type { WithPorts } from '../../store/store.ts';

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
