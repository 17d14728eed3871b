/** One bucket that nothing serves, with many events, beside healthy ones: how many messages are in flight, and what it costs the others. */
import { nativeRecord, syntheticRecord } from './ingest.ts';
import { FAR, FAULTY, NEAR, portFaults } from './port-faults.ts';
import { createWorkersWorld, STEP_MS } from './workers.ts';

const SECOND_MS = 1_000;
/** Keys of healthy buckets are used again after this many events, long after their documents were written. */
const KEYS = 10_000;

interface DeadBucket {
  readonly workers: number;
  readonly minutes: number;
  readonly deadPerS: number;
  readonly exactPerS: number;
  readonly inexactPerS: number;
  readonly inFlightMax: number;
}

interface DeadBucketResult {
  readonly sent: number;
  readonly handedOver: number;
  /** Messages of the dead bucket that are deleted. What was handed over a moment ago is not yet. */
  readonly deleted: number;
  readonly inFlightPeak: number;
  /** The highest number of each minute. */
  readonly inFlightPeaks: readonly number[];
  /** Of the dead bucket's messages that were handed over, and of the others. */
  readonly receivesMax: number;
  readonly healthyReceivesMax: number;
  readonly letters: number;
  readonly healthy: { readonly sent: number; readonly indexed: number; readonly p99S: number };
  /** Messages of the dead bucket that are still in the queue. */
  readonly left: number;
}

/** Plays it for some minutes, from the beginning of the outage on. */
export async function runDeadBucket({
  workers,
  minutes,
  deadPerS,
  exactPerS,
  inexactPerS,
  inFlightMax,
}: DeadBucket): Promise<DeadBucketResult> {
  const sentAtMs = new Map<string, number>();
  /** How many healthy events took so many steps to the index. */
  const lags = createHistogram();
  const deadReceives = createHistogram();
  let healthyReceivesMax = 0;
  let letters = 0;
  const world = await createWorkersWorld({
    workers,
    buckets: [FAULTY, NEAR, FAR],
    limits: { inFlightMax },
    attributesAgeMs: 0,
    indexed(bucket, key) {
      const id = `${bucket}/${key}`;
      const atMs = sentAtMs.get(id);
      if (atMs === undefined) return;
      sentAtMs.delete(id);
      lags.add(world.clock.nowMs() - atMs);
    },
    deleted({ tag, receiveCount }, isLetter) {
      if (isLetter) letters += 1;
      if (tag === 'dead') deadReceives.add(receiveCount);
      else healthyReceivesMax = Math.max(healthyReceivesMax, receiveCount);
    },
  });
  const gone = portFaults.find(({ name }) => name === 'the bucket is gone');
  let sent = 0;
  let healthySent = 0;

  function sendHealthy(bucket: string, isExact: boolean): void {
    healthySent += 1;
    const key = `k-${healthySent % KEYS}`;
    const eventTimeMs = world.clock.nowMs();
    const object = world.storage.put(bucket, key);
    sentAtMs.set(`${bucket}/${key}`, eventTimeMs);
    world.send('healthy', isExact ? nativeRecord(key, { bucket, object, eventTimeMs }) : syntheticRecord(key, { bucket, eventTimeMs }));
  }

  const perStep = (perS: number, step: number): number =>
    Math.floor(((step + 1) * perS * STEP_MS) / SECOND_MS) - Math.floor((step * perS * STEP_MS) / SECOND_MS);

  await world.run(5 * SECOND_MS);
  for (const network of [...world.networks, world.repairNetwork]) network.fault = gone?.begin();
  const inFlightPeaks: number[] = [];
  const steps = (minutes * 60 * SECOND_MS) / STEP_MS;
  for (let step = 0; step < steps; step += 1) {
    for (let left = perStep(deadPerS, step); left > 0; left -= 1) {
      sent += 1;
      world.send('dead', syntheticRecord(`k-${sent % KEYS}`, { bucket: FAULTY.bucket, eventTimeMs: world.clock.nowMs() }));
    }
    for (let left = perStep(exactPerS, step); left > 0; left -= 1) sendHealthy(NEAR.bucket, true);
    for (let left = perStep(inexactPerS, step); left > 0; left -= 1) sendHealthy(FAR.bucket, false);
    await world.run(STEP_MS);
    const minute = Math.floor((step * STEP_MS) / (60 * SECOND_MS));
    inFlightPeaks[minute] = Math.max(inFlightPeaks[minute] ?? 0, world.queue.inFlight);
  }
  const left = [...world.queue.all].filter(({ tag }) => tag === 'dead').length;
  letters += world.queue.moved.length;
  world.end();
  return {
    sent,
    handedOver: world.counts.get('handedOver') ?? 0,
    deleted: deadReceives.count(),
    inFlightPeak: Math.max(...inFlightPeaks),
    inFlightPeaks,
    receivesMax: deadReceives.max(),
    healthyReceivesMax,
    letters,
    healthy: { sent: healthySent, indexed: lags.count(), p99S: lags.quantile(0.99) / SECOND_MS },
    left,
  };
}

/** Counts numbers of which few are different. */
function createHistogram() {
  const counts = new Map<number, number>();
  const sorted = (): readonly (readonly [number, number])[] => [...counts].sort(([a], [b]) => a - b);
  const count = (): number => sorted().reduce((sum, [, many]) => sum + many, 0);

  return {
    add: (value: number): void => void counts.set(value, (counts.get(value) ?? 0) + 1),
    count,
    max: (): number => sorted().at(-1)?.[0] ?? 0,
    quantile(part: number): number {
      let left = Math.ceil(count() * part);
      for (const [value, many] of sorted()) {
        left -= many;
        if (left <= 0) return value;
      }
      return 0;
    },
  };
}
