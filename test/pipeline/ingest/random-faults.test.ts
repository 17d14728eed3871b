/**
 * Random outages of two buckets and of the index store, beside a third bucket that never fails: nothing is lost, nobody else
 * waits, and everything ends once the outages are over.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FaultError, type FaultCode } from '../../../src/domain/fault.ts';
import { createIngestWorld, syntheticRecord, type IngestWorld } from '../../support/worlds/ingest.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const FAILING = ['first', 'second'] as const;
const HEALTHY = 'healthy';
/** What an event of the bucket that never fails may take: a trial of a circuit that it shares, and its settle time. */
const SOON_MS = 8 * SECOND_MS;

type Failing = (typeof FAILING)[number];

type Outage =
  | { readonly kind: 'none' }
  | { readonly kind: 'storage' | 'index'; readonly bucket: Failing; readonly code: FaultCode }
  | { readonly kind: 'keys'; readonly bucket: Failing; readonly modulus: number; readonly code: FaultCode }
  | { readonly kind: 'store'; readonly code: FaultCode };

interface Phase {
  readonly outages: readonly Outage[];
  readonly events: readonly { readonly bucket: string; readonly key: string; readonly how: 'exact' | 'inexact' | 'delete' }[];
  readonly lastsS: number;
}

const bucketCode = fc.constantFrom<FaultCode>('s3.unavailable', 's3.throttled', 'bucket.missing', 'bucket.denied', 'object.denied');
const indexCode = fc.constantFrom<FaultCode>('bucket.index-blocked', 'bucket.index-overloaded', 'bucket.index-unavailable');
const failing = fc.constantFrom(...FAILING);
const outage: fc.Arbitrary<Outage> = fc.oneof(
  fc.constant({ kind: 'none' } as const),
  fc.record({ kind: fc.constant('storage' as const), bucket: failing, code: bucketCode }),
  fc.record({ kind: fc.constant('index' as const), bucket: failing, code: indexCode }),
  fc.record({
    kind: fc.constant('keys' as const),
    bucket: failing,
    modulus: fc.integer({ min: 2, max: 4 }),
    code: fc.constantFrom<FaultCode>('s3.unavailable', 'object.denied', 'object.failed'),
  }),
  fc.record({ kind: fc.constant('store' as const), code: fc.constantFrom<FaultCode>('index.unreachable', 'index.overloaded') }),
);
const event = fc.record({
  bucket: fc.constantFrom(...FAILING),
  key: fc.integer({ min: 0, max: 11 }).map((key) => `k-${key}`),
  how: fc.constantFrom('exact' as const, 'inexact' as const, 'inexact' as const, 'delete' as const),
});
const phase: fc.Arbitrary<Phase> = fc.record({
  outages: fc.array(outage, { maxLength: 3 }),
  events: fc.array(event, { minLength: 3, maxLength: 25 }),
  lastsS: fc.constantFrom(3, 20, 70, 200, 700),
});

function begin(world: IngestWorld, outages: readonly Outage[]): void {
  end(world);
  const storage = new Map<string, FaultCode>();
  const keys: Extract<Outage, { kind: 'keys' }>[] = [];
  for (const each of outages) {
    if (each.kind === 'storage') storage.set(each.bucket, each.code);
    if (each.kind === 'index') world.store.broken.buckets.set(each.bucket, each.code);
    if (each.kind === 'keys') keys.push(each);
    if (each.kind === 'store') world.store.broken.all = new FaultError(each.code, 'an outage of the store');
  }
  let asked = '';
  world.storageHooks.beforeHead = ({ bucket }) => {
    asked = bucket;
    const code = storage.get(bucket);
    if (code !== undefined) throw new FaultError(code, `an outage of ${bucket}`);
  };
  world.storageHooks.afterHead = async (key) => {
    const fails = keys.find(({ bucket, modulus }) => bucket === asked && Number(key.slice(2)) % modulus !== 0);
    if (fails !== undefined) throw new FaultError(fails.code, `an outage of ${key}`);
  };
}

function end(world: IngestWorld): void {
  world.store.broken.all = undefined;
  world.store.broken.buckets.clear();
  world.storageHooks.beforeHead = undefined;
  world.storageHooks.afterHead = undefined;
}

function happen(world: IngestWorld, { bucket, key, how }: Phase['events'][number]) {
  const eventTimeMs = world.clock.nowMs();
  switch (how) {
    case 'exact':
      return world.put(key, { bucket });
    case 'inexact':
      world.storage.put(bucket, key);
      return syntheticRecord(key, { bucket, eventTimeMs });
    case 'delete':
      world.storage.delete(bucket, key);
      return syntheticRecord(key, { bucket, eventName: 'DeleteObject', eventTimeMs });
  }
}

/** Whether what all buckets need fails, or has not recovered yet. */
function isSharedOutage(world: IngestWorld, outages: readonly Outage[]): boolean {
  return outages.some(({ kind }) => kind === 'store') || world.circuits.openOf(['cluster', 'endpoint us-east-1']) !== undefined;
}

/** The keys whose document is not what the bucket holds. */
async function wrongKeys(world: IngestWorld, bucket: string): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (let index = 0; index < 12; index += 1) {
    const key = `k-${index}`;
    const { state } = await world.storage.readState({ bucket, region: 'us-east-1' }, key);
    const document = await world.document(key, bucket);
    const isSame = state.present ? document?.etag === state.etag && document?.settled === true : document === undefined || document.deleted;
    if (!isSame) wrong.push(key);
  }
  return wrong;
}

describe('random outages', () => {
  it('lose nothing, end by themselves, and are nobody else’s', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(phase, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        fc.constantFrom(16, 100),
        async (phases, handsOver, heldMax) => {
          const world = await createIngestWorld({ buckets: [...FAILING, HEALTHY], handsOver, limits: { heldMax } });
          let count = 0;
          for (const { outages, events, lastsS } of phases) {
            begin(world, outages);
            for (const each of events) await world.send(happen(world, each));
            await world.run(SECOND_MS);
            count += 1;
            const [exact, inexact] = [`exact-${count}`, `inexact-${count}`];
            const isShared = isSharedOutage(world, outages);
            await world.send(world.put(exact, { bucket: HEALTHY }));
            world.storage.put(HEALTHY, inexact);
            await world.send(syntheticRecord(inexact, { bucket: HEALTHY, eventTimeMs: world.clock.nowMs() }));
            await world.run(SOON_MS);
            // the index store and the endpoint are everybody's
            if (!isShared && !isSharedOutage(world, outages)) {
              expect(await world.document(exact, HEALTHY)).toBeDefined();
              expect(await world.document(inexact, HEALTHY)).toBeDefined();
            }
            await world.run(lastsS * SECOND_MS);
          }
          end(world);
          await world.run(32 * MINUTE_MS);
          expect(world.messages()).toEqual([]);
          expect(world.letters()).toEqual([]);
          expect(world.circuits.all()).toEqual([]);
          for (const bucket of FAILING) {
            const handedOver = world.handedOver.filter((record) => record.bucket === bucket);
            expect((await wrongKeys(world, bucket)).length).toBeLessThanOrEqual(handedOver.length);
          }
          expect(world.handedOver.filter((record) => record.bucket === HEALTHY)).toEqual([]);
          if (!handsOver) expect(world.handedOver).toEqual([]);
          world.stopping.abort(new Error('the test is over'));
        },
      ),
      { numRuns: 4 },
    );
  }, 300_000);
});
