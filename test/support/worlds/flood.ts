/** A daemon with the memory of a small container, and a queue that holds the worst bodies beside usual events. */
import { usageOf } from '../process-usage.ts';
import { startDaemon, type Daemon } from '../servers/daemon.ts';
import { acceptedBodies, BODY_BYTES_MAX, heavyBodies, rejectedBodies } from '../servers/hostile-bodies.ts';
import { startFloodQueue } from '../servers/flood-queue.ts';
import { indexed, openIndex } from './flow.ts';
import { startQueueWorld } from './queue.ts';

/** What Node chooses with 512 MiB: `docker run --memory=512m node:24 node --max-semi-space-size=16` has a heap limit of 304 MiB, of which this is the old space. */
const OLD_SPACE_MIB = 256;

interface FloodResult {
  readonly isRunning: boolean;
  /** The most memory that the process had, in MiB (VmHWM). */
  readonly memoryMiB: number;
  /** A message that is received again after its visibility time-out may become a second letter. */
  readonly letters: number;
  readonly lettersExpected: number;
  /** Keys of usual events that the index lacks at the end. */
  readonly missing: readonly string[];
  /** Of the usual events, from the first receive to the deletion. */
  readonly healthyMs: { readonly median: number; readonly max: number };
  readonly messagesPerS: number;
  /** CPU time of the process for each message, in ms. */
  readonly cpuMs: number;
  readonly mibPerS: number;
  readonly receivesMax: number;
}

/** From how many bytes on larger bodies are rarer. */
const USUAL_BYTES_MAX = 65_536;

/**
 * What SQS can carry: from 256 bytes, where each kind has at least one record, to SQS's limit, each twice the one before.
 * Up to 64 KiB each size comes sixteen times, and the larger ones half as often as the one before, in a row, so that they
 * meet in memory. If each came as often, two thirds of the time would be spent on the largest two.
 */
export const SIZES_OF_SQS: readonly number[] = Array.from({ length: 13 }, (_, power) => BODY_BYTES_MAX / 2 ** (12 - power)).flatMap(
  (bytes) => Array<number>(bytes <= USUAL_BYTES_MAX ? 16 : (16 * USUAL_BYTES_MAX) / bytes).fill(bytes),
);

/**
 * Every fifth message is a usual event, one in a hundred is heavy work for the index; the rest is rejected or changes
 * nothing. Each kind comes in each of the sizes, which change after each kind came once.
 */
export async function flood(messages: number, sizes: readonly number[] = [BODY_BYTES_MAX]): Promise<FloodResult> {
  const [world, index] = await Promise.all([startQueueWorld(), openIndex('sqlite')]);
  const bodiesBySize = eachOnce(sizes, (bytesMax) => asJson({ ...rejectedBodies(bytesMax), ...acceptedBodies(bytesMax) }));
  const heavyBySize = eachOnce(sizes, (bytesMax) => asJson(heavyBodies(world.bucket, bytesMax)));
  const rejected = Object.keys(rejectedBodies(BODY_BYTES_MAX)).length;
  const kinds = bodiesBySize[0]!.length;
  const healthy = new Map<number, Buffer>();
  const isHealthy = (number: number): boolean => number % 5 === 0;
  const isHeavy = (number: number): boolean => number % 100 === 51;
  for (let number = 0; number < messages; number += 5) healthy.set(number, asJson({ body: world.put(`usual/${number}`) })[0]!);

  const bodyIndex = (number: number): number => number % kinds;
  const hostileBody = (number: number): Buffer => bodiesBySize[Math.floor(number / kinds) % sizes.length]![bodyIndex(number)]!;
  const heavyBody = (number: number): Buffer => {
    const heavy = heavyBySize[Math.floor(number / 400) % sizes.length]!;
    return heavy[Math.floor(number / 100) % heavy.length]!;
  };
  let bytes = 0;
  const queue = await startFloodQueue({
    messages,
    isTimed: isHealthy,
    bodyOf(number) {
      const body = healthy.get(number) ?? (isHeavy(number) ? heavyBody(number) : hostileBody(number));
      bytes += body.length;
      return body;
    },
  });
  const beganMs = performance.now();
  const { AWS_ENDPOINT_URL_S3 = '' } = world.env;
  const daemon = await startSmall({ ...index.env, AWS_ENDPOINT_URL_S3, TALLY_QUEUE_URL: queue.queueUrl });
  try {
    // nothing is received before a bucket is connected
    await daemon.ready();
    await daemon.request('POST', '/v1/buckets', { bucket: world.bucket, wired_by_hand: true });
    await Promise.race([queue.drained, daemon.exited]);
    const durationS = (performance.now() - beganMs) / 1_000;
    const usage = daemon.isRunning ? usageOf(daemon.pid) : { peakRssBytes: 0, cpuUs: 0 };
    const found = daemon.isRunning ? await indexed(daemon, world.bucket) : undefined;
    const times = queue.timesMs.toSorted((a, b) => a - b);
    return {
      isRunning: daemon.isRunning,
      memoryMiB: usage.peakRssBytes / 1_048_576,
      letters: queue.letters.count,
      lettersExpected: Array.from({ length: messages }, (_, number) => number).filter(
        (number) => !isHealthy(number) && !isHeavy(number) && bodyIndex(number) < rejected,
      ).length,
      missing: healthy
        .keys()
        .map((number) => `usual/${number}`)
        .filter((key) => found?.has(key) !== true)
        .toArray(),
      healthyMs: { median: times[Math.floor(times.length / 2)] ?? 0, max: times.at(-1) ?? 0 },
      messagesPerS: queue.ended / durationS,
      cpuMs: usage.cpuUs / 1_000 / messages,
      mibPerS: bytes / 1_048_576 / durationS,
      receivesMax: queue.receivesMax,
    };
  } finally {
    await daemon.kill();
    await Promise.all([queue.close(), world.close(), index.close()]);
  }
}

function startSmall(env: Readonly<Record<string, string>>): Promise<Daemon> {
  return startDaemon({ ...env, NODE_OPTIONS: `--max-old-space-size=${OLD_SPACE_MIB}` });
}

/** Makes each size's bodies once, however often the size comes. */
function eachOnce(sizes: readonly number[], make: (bytesMax: number) => readonly Buffer[]): readonly (readonly Buffer[])[] {
  const made = new Map(Array.from(new Set(sizes), (bytesMax) => [bytesMax, make(bytesMax)]));
  return sizes.map((bytesMax) => made.get(bytesMax)!);
}

function asJson(bodies: Readonly<Record<string, string>>): readonly Buffer[] {
  return Object.values(bodies).map((body) => Buffer.from(JSON.stringify(body)));
}
