/**
 * What the connections of many buckets share (queues, a topic, rules, a trail, keys) is read once for those that are looked at
 * within a minute: with 1,000 buckets the watch would otherwise read the same queue a thousand times an hour.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../ports/clock.ts';
import type { AwsReads } from '../ports/provision.ts';

/** By so much a look may be older than it says: little beside the hour from one look at a bucket to the next. */
const AGE_MAX_MS = 60_000;
/** A rule of each bucket among them: as many as are looked at within a minute, with 10,000 buckets. */
const READS_MAX = 1_000;

/** Creates the reads. Only what exists is remembered: what is missing is read again, because a gap is opened for each bucket that lacks it. */
export function createSharedReads(aws: AwsReads, clock: Pick<Clock, 'monotonicMs'>): AwsReads {
  const known = new LRUCache<string, { readonly atMs: number; readonly answer: unknown }>({ max: READS_MAX });

  function sharing<Asked extends readonly unknown[], Answer>(
    name: keyof AwsReads,
    read: (...asked: Asked) => Promise<Answer>,
  ): (...asked: Asked) => Promise<Answer> {
    return async (...asked) => {
      const id = JSON.stringify([name, ...asked.filter((each) => each !== undefined && !(each instanceof AbortSignal))]);
      const earlier = known.get(id);
      if (earlier !== undefined && clock.monotonicMs() - earlier.atMs < AGE_MAX_MS) return earlier.answer as Answer;
      const atMs = clock.monotonicMs();
      const answer = await read(...asked);
      if (answer !== 'absent') known.set(id, { atMs, answer });
      return answer;
    };
  }

  return {
    // each bucket has its own, and what is about one bucket is asked once an hour
    notificationOf: (...asked) => aws.notificationOf(...asked),
    rulesAbout: (...asked) => aws.rulesAbout(...asked),
    queueAt: sharing('queueAt', (...asked: Parameters<AwsReads['queueAt']>) => aws.queueAt(...asked)),
    queueOf: sharing('queueOf', (...asked: Parameters<AwsReads['queueOf']>) => aws.queueOf(...asked)),
    topicOf: sharing('topicOf', (...asked: Parameters<AwsReads['topicOf']>) => aws.topicOf(...asked)),
    topicTags: sharing('topicTags', (...asked: Parameters<AwsReads['topicTags']>) => aws.topicTags(...asked)),
    ruleOf: sharing('ruleOf', (...asked: Parameters<AwsReads['ruleOf']>) => aws.ruleOf(...asked)),
    rulesNamed: sharing('rulesNamed', (...asked: Parameters<AwsReads['rulesNamed']>) => aws.rulesNamed(...asked)),
    keyOf: sharing('keyOf', (...asked: Parameters<AwsReads['keyOf']>) => aws.keyOf(...asked)),
    trailsOf: sharing('trailsOf', (...asked: Parameters<AwsReads['trailsOf']>) => aws.trailsOf(...asked)),
  };
}
