/** A daemon with the memory of a small container, and a queue that holds the worst bodies beside usual events. */
import { usageOf } from '../process-usage.ts';
import { until } from '../servers/aws.ts';
import { startDaemon, type Daemon } from '../servers/daemon.ts';
import { acceptedBodies, heavyBodies, rejectedBodies } from '../servers/hostile-bodies.ts';
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
}

/** Every fifth message is a usual event, one in a hundred is heavy work for the index; the rest is rejected or changes nothing. */
export async function flood(messages: number): Promise<FloodResult> {
  const [world, index] = await Promise.all([startQueueWorld(), openIndex('sqlite')]);
  const rejected = asJson(rejectedBodies());
  const hostile = [...rejected, ...asJson(acceptedBodies())];
  const heavy = asJson(heavyBodies(world.bucket));
  const healthy = new Map<number, Buffer>();
  const isHeavy = (number: number): boolean => number % 100 === 51;
  for (let number = 0; number < messages; number += 5) healthy.set(number, asJson({ body: world.put(`usual/${number}`) })[0]!);

  const heavyBody = (number: number): Buffer => heavy[Math.floor(number / 100) % heavy.length]!;
  const queue = await startFloodQueue({
    messages,
    bodyOf: (number) => healthy.get(number) ?? (isHeavy(number) ? heavyBody(number) : hostile[number % hostile.length]!),
  });
  const { AWS_ENDPOINT_URL_S3 = '' } = world.env;
  const daemon = await startSmall({ ...index.env, AWS_ENDPOINT_URL_S3, TALLY_QUEUE_URL: queue.queueUrl });
  try {
    // nothing is received before a bucket is connected
    await until('the bucket is connected', async () => {
      const { status } = await daemon.request('POST', '/v1/buckets', { bucket: world.bucket, wired_by_hand: true });
      return status === 201;
    });
    await Promise.race([queue.drained, daemon.exited]);
    const { peakRssBytes } = daemon.isRunning ? usageOf(daemon.pid) : { peakRssBytes: 0 };
    const found = daemon.isRunning ? await indexed(daemon, world.bucket) : undefined;
    return {
      isRunning: daemon.isRunning,
      memoryMiB: peakRssBytes / 1_048_576,
      letters: queue.letters(),
      lettersExpected: Array.from({ length: messages }, (_, number) => number).filter(
        (number) => !healthy.has(number) && !isHeavy(number) && number % hostile.length < rejected.length,
      ).length,
      missing: healthy
        .keys()
        .map((number) => `usual/${number}`)
        .filter((key) => found?.has(key) !== true)
        .toArray(),
    };
  } finally {
    await daemon.kill();
    await Promise.all([queue.close(), world.close(), index.close()]);
  }
}

function startSmall(env: Readonly<Record<string, string>>): Promise<Daemon> {
  return startDaemon({ ...env, NODE_OPTIONS: `--max-old-space-size=${OLD_SPACE_MIB}` });
}

function asJson(bodies: Readonly<Record<string, string>>): readonly Buffer[] {
  return Object.values(bodies).map((body) => Buffer.from(JSON.stringify(body)));
}
