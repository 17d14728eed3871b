/** The policy: all grants together, as stored, and the questions that they answer. */
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { compareKeys } from '../../base/key-order.ts';
import { grantSchema, granteesMatching, parseScope, unionOf, type Grant, type Reader } from './grant.rules.ts';
import { intersects, type BucketPart, type Readable } from '../../store/readable.rules.ts';

/** More grants than a person can oversee; their record has at most some megabytes, which a process reads after each change. */
export const GRANTS_MAX = 10_000;

/** The people who ask again and again; to merge 10,000 grants takes 20 ms. */
const UNIONS_MAX = 1_000;

/** The grants as stored: all in one record, so that its version shows whether any of them has changed. */
export const policySchema = z.object({ grants: z.array(grantSchema).readonly() });

/** The grants, found by whom they are meant for. */
export interface Policy {
  readonly grants: readonly Grant[];
  /** What a person may read. `tooMany`: more than PARTS_MAX parts, of which the person reads none. */
  readableBy(person: Reader): { readonly readable: Readable; readonly tooMany: boolean };
  /** The grants that mean a person, in their order. */
  grantsOf(person: Reader): readonly Grant[];
  /** The grants of which something lies in this part of a bucket. */
  grantsOn(part: BucketPart): readonly Grant[];
}

/** Reads stored grants. One whose texts this version does not understand grants nothing. */
export function policyOf(grants: readonly Grant[]): Policy {
  const placed = grants.flatMap((grant) => {
    const part = parseScope(grant.where);
    return part !== 'everything' && 'mistake' in part ? [] : [{ grant, part }];
  });
  const unions = new LRUCache<string, ReturnType<Policy['readableBy']>>({ max: UNIONS_MAX });
  const byGrantee = Map.groupBy(placed, ({ grant }) => grant.who);
  const meant = (person: Reader) => granteesMatching(person).flatMap((who) => byGrantee.get(who) ?? []);
  return {
    grants,
    readableBy(person) {
      const name = JSON.stringify(granteesMatching(person));
      const known = unions.get(name);
      if (known !== undefined) return known;
      const union = unionOf(meant(person).map(({ part }) => part));
      unions.set(name, union);
      return union;
    },
    grantsOf: (person) => meant(person).map(({ grant }) => grant),
    grantsOn: ({ bucket, prefix }) =>
      placed
        .filter(({ part }) => part === 'everything' || (part.bucket === bucket && intersects(part.prefix, prefix)))
        .map(({ grant }) => grant),
  };
}

/** The order in which grants are stored and shown: by who, then by where. */
export function inOrder(grants: readonly Grant[]): readonly Grant[] {
  return grants.toSorted((a, b) => compareKeys(a.who, b.who) || compareKeys(a.where, b.where));
}
