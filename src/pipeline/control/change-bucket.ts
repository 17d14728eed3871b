/**
 * Changes the record of a connected bucket. Its parts in AWS are left alone: the earlier ones deliver until an apply has made
 * others, and what comes by another way than the source says is looked at instead of believed, so that nothing is missed.
 */
import type { ChangeBucketRequest } from '../../api/buckets.ts';
import { asksForMore, type BucketRecord } from '../../domain/bucket.ts';
import { RequestError } from '../../domain/request-error.ts';
import { topicAfter, type ConnectBucket } from '../buckets/connect.ts';
import { requireBucket } from '../buckets/list.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs } from '../records/stored.ts';

interface ChangeBucketDependencies {
  readonly state: StateStore;
  readonly connectBucket: Pick<ConnectBucket, 'connect'>;
}

interface Changed {
  readonly record: BucketRecord;
  /** The bucket asks for more enrichment than before, which the documents lack that are indexed already. */
  readonly isFillWanted: boolean;
  /** The source by which its parts in AWS were made, if that is another one. */
  readonly madeFor?: BucketRecord['source'];
}

/** Throws `bucket.not-connected`, `request.invalid`, and what ConnectBucket.connect() throws. */
export type ChangeBucket = (bucket: string, request: ChangeBucketRequest, by: string, signal?: AbortSignal) => Promise<Changed>;

/** Creates the function. */
export function createChangeBucket({ state, connectBucket }: ChangeBucketDependencies): ChangeBucket {
  return async function changeBucket(bucket, request, by, signal) {
    const before = await requireBucket(state, bucket, signal);
    refuse(before, request);
    const record = await connectBucket.connect({ bucket, ...request }, by, signal);
    const connection = await readRecord(state, refs.connection(bucket), signal);
    const isMadeForAnother = connection !== undefined && connection.source !== record.source;
    return {
      record,
      isFillWanted: asksForMore(before.enrich, record.enrich),
      ...(isMadeForAnother && { madeFor: connection.source }),
    };
  };
}

function refuse(before: BucketRecord, request: ChangeBucketRequest): void {
  const { source, topic_arn: topicArn } = request;
  if (typeof topicArn === 'string' && source === undefined && before.source !== 'topic') {
    const detail = `topic_arn: ${before.bucket} has the source ${before.source}, so say which source the topic is for: "source": "topic"`;
    throw new RequestError('request.invalid', detail);
  }
  if ((source ?? before.source) === 'topic' && topicAfter(before, request) === undefined) {
    throw new RequestError('request.invalid', 'topic_arn: must be given for the source topic');
  }
  if (topicArn?.endsWith('.fifo') === true) {
    throw new RequestError('request.invalid', 'topic_arn: S3 publishes to standard topics only, not to FIFO topics');
  }
}
