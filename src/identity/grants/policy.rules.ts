/** The policy: all grants together, as stored, and the questions that they answer. */
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { compareKeys } from '../../base/key-order.ts';
import { grantSchema, granteesMatching, parseScope, unionOf, type Grant, type Reader } from './grant.rules.ts';
import { intersects, type BucketPart, type Readable } from '../../store/readable.rules.ts';

/** More grants than a person can oversee. Their record has a few megabytes at most, which each process reads after a change. */
export const GRANTS_MAX = 10_000;

/** How many people's parts are cached: merging 10,000 grants takes 20 ms. */
const UNIONS_MAX = 1_000;

/** The stored grants: all in one record, whose version shows whether any has changed. */
export const policySchema = z.object({ grants: z.array(grantSchema).readonly() });

/** The grants by grantee. */
export interface Policy {
  readonly grants: readonly Grant[];
  /** What a person may read. `tooMany`: more than PARTS_MAX parts, none of which the person can read. */
  readableBy(person: Reader): { readonly readable: Readable; readonly tooMany: boolean };
  /** The grants that apply to a person, in order. */
  grantsOf(person: Reader): readonly Grant[];
  /** The grants that cover anything in this part of a bucket. */
  grantsOn(part: BucketPart): readonly Grant[];
}

/** Reads stored grants. A grant that this version doesn't understand grants nothing. */
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
