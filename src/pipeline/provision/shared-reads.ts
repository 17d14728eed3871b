/**
 * What the connections of many buckets share (queues, a topic, rules, a trail) is read once for those that are looked at
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
  function sharing<Asked extends readonly unknown[], Answer>(
    read: (...asked: Asked) => Promise<Answer>,
  ): (...asked: Asked) => Promise<Answer> {
    const known = new LRUCache<string, { readonly atMs: number; readonly answer: Answer }>({ max: READS_MAX });
    return async (...asked) => {
      const id = JSON.stringify(asked.filter((each) => each !== undefined && !(each instanceof AbortSignal)));
      const earlier = known.get(id);
      if (earlier !== undefined && clock.monotonicMs() - earlier.atMs < AGE_MAX_MS) return earlier.answer;
      const atMs = clock.monotonicMs();
      const answer = await read(...asked);
      if (answer !== 'absent') known.set(id, { atMs, answer });
      return answer;
    };
  }

  return {
    // each bucket has its own, and what is about one bucket is read once an hour
    notificationOf: (...asked) => aws.notificationOf(...asked),
    ruleCount: (...asked) => aws.ruleCount(...asked),
    queueAt: sharing((...asked: Parameters<AwsReads['queueAt']>) => aws.queueAt(...asked)),
    queueTags: sharing((...asked: Parameters<AwsReads['queueTags']>) => aws.queueTags(...asked)),
    queueUrlOf: (...asked) => aws.queueUrlOf(...asked),
    queueOf: sharing((...asked: Parameters<AwsReads['queueOf']>) => aws.queueOf(...asked)),
    topicOf: sharing((...asked: Parameters<AwsReads['topicOf']>) => aws.topicOf(...asked)),
    ruleOf: sharing((...asked: Parameters<AwsReads['ruleOf']>) => aws.ruleOf(...asked)),
    trailsOf: sharing((...asked: Parameters<AwsReads['trailsOf']>) => aws.trailsOf(...asked)),
  };
}
