import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bulkAction, createRejectionJudge, type BulkAction } from '../../../src/store/opensearch/bulk.ts';
import type { IndexWriteAnswer } from '../../../src/store/store.ts';
import { indexNames } from '../../../src/store/opensearch/setup.ts';

const names = indexNames('tally');
const MINUTE_MS = 60_000;

function actionsOf(buckets: readonly string[]): readonly BulkAction[] {
  return buckets.flatMap((bucket, at) => {
    const document = { bucket, key: `k${at}`, deleted: false, clock: 1, settled: true, source: 'native', indexed_at: 'x' } as const;
    const action = bulkAction({ document, equalClock: 'accept' }, names);
    return 'write' in action ? [action] : [];
  });
}

const written: IndexWriteAnswer = { kind: 'written' };
const refused: IndexWriteAnswer = { kind: 'fault', fault: { code: 'index.rejected', reason: '400 mapper_parsing_exception' } };

function createWorld() {
  let nowMs = 1_000_000;
  const judge = createRejectionJudge({ monotonicMs: () => nowMs });
  return {
    pass(ms: number) {
      nowMs += ms;
    },
    /** Judges one request of these verdicts, each with its bucket, and returns what became of each. */
    request(...items: readonly (readonly [bucket: string, IndexWriteAnswer])[]): readonly string[] {
      const verdicts = judge(
        actionsOf(items.map(([bucket]) => bucket)),
        items.map(([, verdict]) => verdict),
      );
      return verdicts.map((verdict) => (verdict.kind === 'fault' ? verdict.fault.code : verdict.kind));
    },
  };
}

describe('a document that its index refuses', () => {
  it('is rejected when the same request shows that the index accepts others', () => {
    const world = createWorld();
    expect(world.request(['a', refused], ['a', written], ['a', refused])).toEqual(['index.rejected', 'written', 'index.rejected']);
  });

  it('is a fault of its index when nothing shows that: also what another index accepts', () => {
    const world = createWorld();
    expect(world.request(['a', refused], ['b', written])).toEqual(['bucket.index-misconfigured', 'written']);
  });

  it('is rejected within a minute of an accepted document, and not later', () => {
    const world = createWorld();
    world.request(['a', written]);
    world.pass(MINUTE_MS - 1);
    expect(world.request(['a', refused])).toEqual(['index.rejected']);
    world.pass(1);
    expect(world.request(['a', refused])).toEqual(['bucket.index-misconfigured']);
    world.request(['a', written]);
    expect(world.request(['a', refused])).toEqual(['index.rejected']);
  });

  it('leaves every other fault as it is', () => {
    const blocked: IndexWriteAnswer = { kind: 'fault', fault: { code: 'bucket.index-blocked', reason: 'r' } };
    expect(createWorld().request(['a', blocked], ['a', { kind: 'equal' }])).toEqual(['bucket.index-blocked', 'equal']);
  });

  it('costs at most three documents in a row, however requests come and fail', () => {
    const item = fc.tuple(fc.constantFrom('a', 'b'), fc.constantFrom(written, refused));
    const request = fc.record({
      passMs: fc.integer({ min: 0, max: 2 * MINUTE_MS }),
      items: fc.array(item, { minLength: 1, maxLength: 6 }),
    });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 30 }), (requests) => {
        const world = createWorld();
        const since = new Map<string, { rejected: number; ageMs: number }>();
        for (const { passMs, items } of requests) {
          world.pass(passMs);
          for (const bucket of since.values()) bucket.ageMs += passMs;
          const ends = world.request(...items);
          const accepted = new Set(items.filter(([, verdict]) => verdict === written).map(([bucket]) => bucket));
          for (const bucket of accepted) since.set(bucket, { rejected: 0, ageMs: 0 });
          items.forEach(([bucket], at) => {
            if (ends[at] !== 'index.rejected' || accepted.has(bucket)) return;
            const witness = since.get(bucket);
            expect(witness?.ageMs).toBeLessThan(MINUTE_MS);
            if (witness !== undefined) witness.rejected += 1;
            expect(witness?.rejected).toBeLessThanOrEqual(3);
          });
        }
      }),
    );
  });
});
