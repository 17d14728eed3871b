/**
 * What was handed over is repaired: random changes of a bucket, of which some are served and some are handed over, over outages, workers
 * that are killed and started again, and wrong clocks. When the gaps are closed, the index equals the bucket, tags included.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { markSchema } from '../../../src/domain/gaps/dirty.ts';
import { clockOfMs } from '../../../src/domain/ordering/clock.ts';
import { closeGapsOf } from '../../support/worlds/gaps.ts';
import { createAskToRepair } from '../../../src/pipeline/calendar/close-gaps.ts';
import { createHandover, type HandedOverRecord, type Handover } from '../../../src/pipeline/gaps/handover.ts';
import { listAllRecords, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { BUCKET, settled } from '../../support/worlds/ingest.ts';
import { createJobsWorld } from '../../support/worlds/jobs.ts';

const DAY_MS = 86_400_000;
const KEYS = ['a', 'a/b', 'b', 'c'] as const;
/** Longer than every gap takes to close once all works: a wrong clock, a quiet minute, the wait for late events, a killed worker. */
const REPAIR_MAX_S = 3_600;

/** An object that stays: what an empty bucket lacks is deleted only with a person's consent. */
const KEPT = 'kept';
type Key = (typeof KEYS)[number] | typeof KEPT;
type Step =
  | { readonly kind: 'put' | 'delete' | 'tag'; readonly key: Key }
  | { readonly kind: 'wait'; readonly forS: number }
  | { readonly kind: 'outage'; readonly of: 'listing' | 'heads' | 'index' }
  | { readonly kind: 'recovery' | 'crash' | 'kill' };

const keyOf = fc.constantFrom(...KEYS);
const stepOf: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), key: keyOf }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), key: keyOf }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('tag' as const), key: keyOf }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('wait' as const), forS: fc.constantFrom(1, 4, 20, 70) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('outage' as const),
      of: fc.constantFrom('listing' as const, 'heads' as const, 'index' as const),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'recovery' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'crash' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'kill' as const }) },
);

/** A record whose message was not deleted yet. */
interface Delivered {
  readonly key: Key;
  readonly change: HandedOverRecord['change'];
  readonly sentAtMs: number;
}

async function createWorld(skewsMs: readonly number[]) {
  const store = createMemoryStore();
  let outage: 'listing' | 'heads' | 'index' | undefined;
  const refusing = (part: typeof outage): void => {
    if (outage === part) throw new FaultError(part === 'index' ? 'bucket.index-blocked' : 'bucket.missing', 'an outage');
  };
  const objects: typeof store.objects = {
    ...store.objects,
    write: async (writes, signal) =>
      outage === 'index'
        ? writes.map(() => ({ kind: 'fault', code: 'bucket.index-blocked', reason: 'an outage' }))
        : store.objects.write(writes, signal),
    probeBucket: async (...asked) => {
      refusing('index');
      return store.objects.probeBucket(...asked);
    },
  };
  const world = await createJobsWorld({ store: { ...store, objects } });
  const { clock, s3, state } = world;
  await updateRecord(state, refs.bucket(BUCKET), (bucket) => bucket && { ...bucket, enrich: 'tags' as const });
  s3.onPage = () => refusing('listing');
  s3.onHead = () => refusing('heads');
  const askToRepair = createAskToRepair({ listing: s3, objects, clock });
  const closeGaps = closeGapsOf(world, { askToRepair });
  let worker = world.startWorker();
  let restarts = 0;
  let handover = startHandover();
  let queue: Delivered[] = [];
  let handedOverInAll = 0;
  let versions = 0;

  function startHandover(): Handover {
    const skewMs = skewsMs[restarts % skewsMs.length] ?? 0;
    const own = { ...clock, nowMs: () => clock.nowMs() + skewMs };
    return createHandover({ state, clock: own, telemetry: createFakeTelemetry(), permission: { isPermitted: true } });
  }

  /** The change is made, and its record is delivered at once. */
  function change(kind: 'put' | 'delete' | 'tag', key: Key): void {
    const known = s3.objects.get(key);
    versions += 1;
    const lastModifiedMs = Math.floor(clock.nowMs() / 1_000) * 1_000;
    const fresh = { present: true, etag: `etag-${versions}`, sizeBytes: versions, lastModifiedMs, userMetadata: {} } as const;
    if (kind === 'delete') s3.objects.delete(key);
    else if (kind === 'put' || known === undefined) s3.objects.set(key, fresh);
    else s3.objects.set(key, { ...known, tags: { colour: `colour-${versions}` } });
    const isTags = kind === 'tag' && known !== undefined;
    queue.push({ key, change: kind === 'delete' ? 'delete' : isTags ? 'tags' : 'other', sentAtMs: clock.nowMs() });
  }

  /** What the data path does with what is in the queue: it serves the record, or hands it over while it cannot. */
  async function deliver(): Promise<void> {
    for (const record of queue) {
      if (outage === undefined) await serve(record);
      else handOver(record);
    }
  }

  async function serve(record: Delivered): Promise<void> {
    const { key } = record;
    const nowMs = clock.nowMs();
    const present = s3.objects.get(key);
    const looked = present === undefined ? ({ present: false } as const) : { ...present, tags: present.tags ?? {} };
    const facts = { bucket: BUCKET, key, state: looked, clock: clockOfMs(nowMs), settled: true, source: 'native' } as const;
    await store.objects.write([{ document: documentOf({ ...facts, cause: {}, stateAtMs: nowMs, nowMs }), equalClock: 'accept' }]);
    queue = queue.filter((each) => each !== record);
  }

  /** The message is deleted when the handover says so; the answer to a worker that was killed deletes nothing. */
  function handOver(record: Delivered): void {
    const by = restarts;
    const { key, ...told } = record;
    // some objects fail alone
    const alone = key === 'c' ? { key } : {};
    handover.handOver({ bucket: BUCKET, eventTimeMs: record.sentAtMs, reason: 'bucket.missing', ...told, ...alone }).then(
      () => {
        if (by !== restarts || !queue.includes(record)) return;
        queue = queue.filter((each) => each !== record);
        handedOverInAll += 1;
      },
      () => undefined,
    );
  }

  async function second(): Promise<void> {
    await deliver();
    await clock.advance(1_000);
    await settled();
    const seconds = Math.floor(clock.nowMs() / 1_000);
    const calendar = new AbortController().signal;
    if (seconds % 15 === 0) await closeGaps(calendar).catch(() => undefined);
    if (seconds % 60 === 0) await world.tidy().catch(() => undefined);
  }

  async function take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'put':
      case 'delete':
      case 'tag':
        return change(step.kind, step.key);
      case 'wait':
        for (let seconds = 0; seconds < step.forS; seconds += 1) await second();
        return;
      case 'outage':
        outage = step.of;
        return;
      case 'recovery':
        outage = undefined;
        return;
      case 'crash':
        restarts += 1;
        handover = startHandover();
        return;
      case 'kill':
        worker.kill();
        worker = world.startWorker();
    }
  }

  const openGaps = () => listAllRecords(state, 'gap', markSchema);

  /** The outage is over; resolves once every gap is closed. */
  async function repaired(): Promise<void> {
    outage = undefined;
    for (let seconds = 0; seconds < REPAIR_MAX_S; seconds += 1) {
      await second();
      if (seconds % 15 === 0 && queue.length === 0 && (await openGaps()).length === 0) return;
    }
    throw new Error(`not closed: ${JSON.stringify(await openGaps())} ${JSON.stringify(await world.allJobs())}`);
  }

  /** What the index shows and what the bucket holds, as `key etag tags`. */
  async function sides() {
    const documents = await store.objects.search({ bucket: BUCKET, limit: 100 });
    const text = (key: string, etag: string | undefined, tags = {}) => `${key} ${etag} ${JSON.stringify(tags)}`;
    return {
      index: documents.map(({ key, etag, tags }) => text(key, etag, tags)),
      bucket: world.inBucket().map((key) => text(key, s3.objects.get(key)?.etag, s3.objects.get(key)?.tags)),
    };
  }

  return { take, repaired, sides, handedOver: () => handedOverInAll, stop: () => worker.stop() };
}

describe('what was handed over', () => {
  it('is repaired: deletes, tags and puts, over random outages, workers, restarts and wrong clocks', async () => {
    let handedOver = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(0, -DAY_MS, -5_000, 60_000), { minLength: 3, maxLength: 3 }),
        fc.array(stepOf, { minLength: 8, maxLength: 30 }),
        async (skewsMs, steps) => {
          const world = await createWorld(skewsMs);
          for (const key of [...KEYS, KEPT] as const) await world.take({ kind: 'put', key });
          await world.take({ kind: 'wait', forS: 1 });
          for (const step of steps) await world.take(step);
          await world.repaired();
          const { index, bucket } = await world.sides();
          expect(index).toEqual(bucket);
          handedOver += world.handedOver();
          await world.stop();
        },
      ),
      { numRuns: 60 },
    );
    // the histories are not trivial: sixty hand over 161 records on average, with a standard deviation of 25
    expect(handedOver).toBeGreaterThan(30);
  }, 300_000);
});
