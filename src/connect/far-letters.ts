/**
 * The dead-letter queues of regions with connected buckets but without the bucket queue. SNS and EventBridge move what they could not
 * deliver to their own region's queue.
 */
import { farLettersArn, ownerIn, parseArn } from './names.rules.ts';
import type { Provisioner } from './aws/provisioner.ts';
import type { WithPorts } from '../store/store.ts';
import { listBuckets } from '../observing/buckets.ts';

/** New regions are rare, and letters wait for days. */
const EVERY_MS = 600_000;

interface FarLettersDependencies extends WithPorts<'state' | 'clock'> {
  readonly aws: Pick<Provisioner, 'queueAt' | 'queueTags' | 'queueOf'>;
  /** The bucket queue. */
  readonly queueUrl: string;
}

/** The queues' URLs, at most ten minutes old. Throws what AWS refuses, and the store's fault; the next call returns the last known URLs. */
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
