/** Whole re-indexes by the product's own turn: parts at once, turns of random length, ends and faults in the middle, changes while it lists. */
import { createTestCircuits } from '../fakes/circuits.ts';
import { createAwsClients, type AwsClients } from '../../../src/aws/clients.ts';
import { createS3Listing } from '../../../src/aws/s3-listing.ts';
import { createS3Storage } from '../../../src/aws/s3-storage.ts';
import { systemClock } from '../../../src/process/system-clock.ts';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { addCounts, noCounts, shownCounts, type ReconcileCounts, type ShownCounts } from '../../../src/records/counts.ts';
import type { Store } from '../../../src/store/store.ts';
import { createBackgroundWriter } from '../../../src/repair/background-writer.ts';
import { createReconcileTurn, type ReconcileTurn, type TurnControls } from '../../../src/repair/reconcile-turn.ts';
import type { TurnEnd } from '../../../src/repair/job.rules.ts';
import { recordOf } from '../fakes/bucket-record.ts';
import { allowance } from '../worlds/reindex.ts';
import { createFakeTelemetry } from '../fakes/ports.ts';
import type { Contents } from '../servers/listing/contents.ts';
import type { ListingServer } from '../servers/listing/listing-server.ts';
import { createRandom, type Random } from './seeded.ts';
import { documentOfEvent, type Change, type History } from './reindex-history.ts';

export interface ReindexPlan {
  readonly seed: number;
  readonly prefix: string;
  readonly fill: boolean;
  /** Ranges, run at once. */
  readonly parts: number;
  /** Listing pages of a turn. */
  readonly slicesMax: number;
  /** Whether turns end early, are limited and killed, by chance. */
  readonly isDisturbed: boolean;
}

export interface Reindexer {
  /** Makes bucket and index as the history says. */
  begin(bucket: string, history: History): Promise<Contents>;
  /** Re-indexes until every part is done; answers the sum of what was counted. Then tells the live path what it was not told yet. */
  run(bucket: string, history: History, plan: ReindexPlan): Promise<ShownCounts>;
  /** One turn over a whole prefix. */
  turn(bucket: string, prefix: string, controls?: Partial<TurnControls>): Promise<TurnEnd>;
  /** Every live document of a bucket, in key order. */
  documents(bucket: string): Promise<readonly ObjectDocument[]>;
  close(): void;
}

/** More turns than any part needs, faults included: it would never end. */
const TURNS_MAX = 500;

/** Creates a re-indexer of one store and the buckets of one listing server. */
export function createReindexer(store: Store, server: ListingServer): Reindexer {
  const aws = createClients(server.url);
  const telemetry = createFakeTelemetry();
  const circuits = createTestCircuits({ clock: systemClock, telemetry });
  const limits = { actionsMax: 50, bytesMax: 1_000_000, concurrency: 2 };
  const turn = createReconcileTurn({
    objects: store.objects,
    scan: store.scan,
    listing: createS3Listing({ clientFor: aws.s3For, clock: systemClock }),
    storage: createS3Storage({ clientFor: aws.s3For, region: 'us-east-1', clock: systemClock }),
    ...createBackgroundWriter({ objects: store.objects, clock: systemClock, telemetry, circuits, limits, liveIsBusy: () => false }),
    clock: systemClock,
    telemetry,
    circuits,
  });

  return {
    async begin(bucket, { keys }) {
      const contents = server.createBucket(bucket);
      await store.objects.createBucket(bucket);
      for (const { key, state } of keys) if (state !== undefined) contents.put(key, state);
      const documents = keys.flatMap(({ document }) => (document === undefined ? [] : [document]));
      for (let from = 0; from < documents.length; from += 1_000) await write(documents.slice(from, from + 1_000));
      await store.scan.refresh(bucket);
      return contents;
    },

    async run(bucket, history, plan) {
      const live = createLivePath(bucket, history.changes);
      const random = createRandom(plan.seed);
      const ends = partEnds(history, plan, random);
      const counts = await Promise.all(
        [...ends, undefined].map((upTo, at) => runPart({ turn, live, random, plan, bucket, after: ends[at - 1] ?? '', upTo })),
      );
      server.beforeAnswer(undefined);
      await live.tellAll();
      return shownCounts(counts.reduce((sum, each) => addCounts(sum, each), noCounts));
    },

    turn: (bucket, prefix, controls) =>
      turn(
        { bucket: recordOf(bucket), prefix, after: '', mode: 'apply', fill: false, tags: false },
        { ...calm(100), ...controls },
        new AbortController().signal,
      ),

    async documents(bucket) {
      await store.scan.refresh(bucket);
      const found: ObjectDocument[] = [];
      for (;;) {
        const last = found.at(-1);
        const page = await store.objects.search({ bucket, limit: 1_000, ...(last !== undefined && { after: { bucket, key: last.key } }) });
        found.push(...page);
        if (page.length < 1_000) return found;
      }
    },

    close: () => aws.close(),
  };

  async function write(documents: readonly ObjectDocument[]): Promise<void> {
    const answers = await store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
    const fault = answers.find(({ kind }) => kind === 'fault');
    if (fault !== undefined) throw new Error(JSON.stringify(fault));
  }

  /** Changes the bucket as the history says, and tells the live path of it: exact events, each written at its own clock. */
  function createLivePath(bucket: string, changes: readonly Change[]): LivePath {
    const contents = server.contents(bucket);
    let requests = 0;
    let lastClock = 0;
    let toMake = [...changes];
    let toTell: { readonly atRequest: number; readonly document: ObjectDocument }[] = [];

    async function tell(isDue: (atRequest: number) => boolean): Promise<void> {
      const due = toTell.filter(({ atRequest }) => isDue(atRequest));
      toTell = toTell.filter(({ atRequest }) => !isDue(atRequest));
      for (const { document } of due) await store.objects.write([{ document, equalClock: 'refuse' }]);
    }

    server.beforeAnswer(async (request) => {
      if (request.bucket !== bucket) return;
      requests += 1;
      const now = toMake.filter(({ atRequest }) => atRequest <= requests);
      toMake = toMake.filter(({ atRequest }) => atRequest > requests);
      for (const { key, state, toldAtRequest } of now) {
        if (state === undefined) contents.remove(key);
        else contents.put(key, state);
        // S3's sequencers grow with each change of a key
        lastClock = Math.max(lastClock + 1, Date.now() * 1_000);
        toTell.push({ atRequest: toldAtRequest, document: documentOfEvent(bucket, { key, state }, lastClock) });
      }
      await tell((atRequest) => atRequest <= requests);
    });
    return { requests: () => requests, tellAll: () => tell(() => true) };
  }
}

interface LivePath {
  /** Requests to S3 so far. */
  readonly requests: () => number;
  readonly tellAll: () => Promise<void>;
}

interface PartRun {
  readonly turn: ReconcileTurn;
  readonly live: LivePath;
  readonly random: Random;
  readonly plan: ReindexPlan;
  readonly bucket: string;
  readonly after: string;
  readonly upTo: string | undefined;
}

/** Turn after turn from the cursor that the last one left; a killed one leaves none. */
async function runPart({ turn, random, plan, bucket, after, upTo }: PartRun): Promise<ReconcileCounts> {
  let cursor = after;
  let counts = noCounts;
  for (let turns = 0; turns < TURNS_MAX; turns += 1) {
    const request = {
      bucket: recordOf(bucket),
      prefix: plan.prefix,
      after: cursor,
      mode: 'apply',
      fill: plan.fill,
      tags: false,
      ...(upTo !== undefined && { upTo }),
    } as const;
    const controls = calm(plan.slicesMax);
    const killing = new AbortController();
    if (plan.isDisturbed) {
      controls.shouldEnd = () => random.integer(1, 4) === 1;
      controls.tombstones = {
        ...allowance(),
        async reserve(count) {
          if (random.integer(1, 3) === 1) throw new Error('the job does not compare now');
          return count;
        },
      };
      if (random.integer(1, 5) === 1) setTimeout(() => killing.abort(new Error('killed')), random.integer(0, 30));
    }
    const result = await turn(request, controls, killing.signal).catch((error: unknown) => {
      if (!killing.signal.aborted) throw error;
      return undefined;
    });
    if (result === undefined) continue;
    ({ cursor } = result);
    counts = addCounts(counts, result.counts);
    if (result.done) return counts;
  }
  throw new Error(`not done after ${TURNS_MAX} turns, at ${JSON.stringify(cursor)}`);
}

/** Ends of the parts but the last: at keys, and between them. */
function partEnds({ keys }: History, { parts }: ReindexPlan, random: Random): readonly string[] {
  if (keys.length === 0) return [];
  const ends = Array.from({ length: parts - 1 }, () => {
    const { key } = random.pick(keys);
    return random.integer(0, 1) === 0 ? key : Array.from(key).slice(0, random.integer(1, key.length)).join('');
  });
  return [...new Set(ends)].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

function calm(slicesMax: number) {
  let slices = 0;
  return {
    tombstones: allowance(),
    leave: () => Promise.resolve(false),
    shouldEnd: () => (slices += 1) > slicesMax,
    isOver: () => false,
  };
}

function createClients(url: string): AwsClients {
  return createAwsClients({
    region: 'us-east-1',
    endpoints: { s3: url },
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    s3: { forcePathStyle: true, timeoutMs: 10_000, connectionsMax: 50 },
    sqs: { receivesMax: 1, waitS: 1 },
  });
}
