/**
 * The dead-letter queues of the regions in which buckets are connected and the bucket queue is not: SNS and EventBridge of a region
 * move there what they could not deliver.
 */
import { farLettersArn, ownerIn, parseArn } from './names.rules.ts';
import type { Provisioner } from './aws/provisioner.ts';
import type { WithPorts } from '../store/store.ts';
import { listBuckets } from '../observing/known-buckets.ts';

/** A region begins with a bucket, and its letters wait for days. */
const EVERY_MS = 600_000;

interface FarLettersDependencies extends WithPorts<'state' | 'clock'> {
  readonly aws: Pick<Provisioner, 'queueAt' | 'queueTags' | 'queueOf'>;
  /** The bucket queue. */
  readonly queueUrl: string;
}

/** The URLs of the queues, as found within ten minutes. Throws what AWS refuses, and the store's fault; the next call answers what was known. */
export type FarLetters = (signal?: AbortSignal) => Promise<readonly string[]>;

export function createFarLetters({ state, aws, queueUrl, clock }: FarLettersDependencies): FarLetters {
  let urls: readonly string[] = [];
  let dueMs = -Infinity;
  return async function farLetters(signal) {
    if (clock.monotonicMs() < dueMs) return urls;
    dueMs = clock.monotonicMs() + EVERY_MS;
    const regions = new Set((await listBuckets(state)).flatMap(({ source, region }) => (source === 'webhook' ? [] : [region])));
    const home = parseArn((await aws.queueAt(queueUrl, signal)).arn);
    const owner = ownerIn(await aws.queueTags(queueUrl, signal));
    if (home === undefined || owner === undefined) return urls;
    const found: string[] = [];
    for (const region of regions) {
      if (region === home.region) continue;
      const queue = await aws.queueOf(farLettersArn(owner.installation, { ...home, region }), signal);
      if (queue !== 'absent') found.push(queue.url);
    }
    urls = found;
    return urls;
  };
}
