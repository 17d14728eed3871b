/**
 * The bucket queue with its dead-letter queue. The redrive policy of the queue names it; if that was lost, the connection that
 * was made with the queue knows it still, and so may the settings. A queue is never its own dead-letter queue.
 */
import type { ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { parseArn } from '../../domain/provisioning/names.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AwsReads } from '../ports/provision.ts';

export interface BucketQueue {
  readonly arn: string;
  /** Absent: nothing names one. */
  readonly deadLetterArn?: string;
}

/** Throws what reading the queues throws. */
export type ReadBucketQueue = (
  queueUrl: string,
  connection: Pick<ConnectionRecord, 'queueArn' | 'deadLetterArn'> | undefined,
  signal?: AbortSignal,
) => Promise<BucketQueue>;

interface Dependencies {
  readonly aws: Pick<AwsReads, 'queueAt'>;
  /** The dead-letter queue of the settings. */
  readonly deadLetterUrl: string | undefined;
}

/** Creates the function. */
export function createReadBucketQueue({ aws, deadLetterUrl }: Dependencies): ReadBucketQueue {
  return async function readBucketQueue(queueUrl, connection, signal) {
    const { arn, deadLetterArn: target } = await aws.queueAt(queueUrl, signal);
    const known = [target, connection?.queueArn === arn ? connection.deadLetterArn : undefined];
    const deadLetterArn = known.find((each) => each !== undefined && each !== arn) ?? (await fromSettings(arn, signal));
    return deadLetterArn === undefined ? { arn } : { arn, deadLetterArn };
  };

  /** A redrive policy reaches queues of the same region and account only. */
  async function fromSettings(queueArn: string, signal?: AbortSignal): Promise<string | undefined> {
    if (deadLetterUrl === undefined) return undefined;
    const { arn } = await aws.queueAt(deadLetterUrl, signal).catch(unlessDenied);
    const [queue, letters] = [queueArn, arn].map(parseArn);
    const isNear = queue?.region === letters?.region && queue?.account === letters?.account;
    return isNear && arn !== queueArn ? arn : undefined;
  }
}

/** Who may not read the queue does not know its ARN. */
function unlessDenied(error: unknown): { readonly arn: string } {
  if (error instanceof RequestError && error.code === 'connect.denied') return { arn: '' };
  throw error;
}
