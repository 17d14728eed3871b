/** Reads and writes a bucket's notification configuration. LocalStack ignores ExpectedBucketOwner; AWS answers 403. */
import { buffer } from 'node:stream/consumers';
import {
  GetBucketNotificationConfigurationCommand,
  PutBucketNotificationConfigurationCommand,
  type NotificationConfiguration as SdkNotification,
} from '@aws-sdk/client-s3';
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import { sdkConfiguration, type NotificationConfiguration } from '../notification.rules.ts';
import { printable } from '../../base/printable.ts';
import { RequestError, type RequestErrorCode } from '../../base/request-error.ts';
import type { Clock } from '../../process/clock.ts';
import { createAsk, hasBody, isRepeated } from '../../aws/s3-ask.ts';
import type { ClientsOf } from './ask.ts';
import { questionText, s3Fault, type S3Question, type S3Refusal } from '../../aws/s3-faults.ts';

/** Replaces a body that was read here, for the SDK to parse. */
const READ_ALREADY = new TextEncoder().encode('<NotificationConfiguration/>');

/** The SDK sends event names unchanged, even if its types do not know them. */
const sdkNotification = z.custom<SdkNotification>((value) => typeof value === 'object');

/** A bucket and the account that must own it. S3 refuses every request if another account does, because a freed name may belong to someone else by now. */
export interface OwnedBucket {
  readonly bucket: string;
  readonly region: string;
  readonly account: string;
}

/** Creates both functions. They need s3:GetBucketNotification and s3:PutBucketNotification. */
export function createS3Notification({ s3For, once }: ClientsOf<'s3For'>, clock: Pick<Clock, 'monotonicMs'>) {
  const { ask } = createAsk(s3For, clock);
  const { ask: askOnce } = createAsk(once.s3For, clock);
  return {
    /** The notification configuration as S3's own XML. */
    async notificationOf({ bucket, region, account }: OwnedBucket, signal?: AbortSignal): Promise<string> {
      const question = { bucket, region, operation: 'GetBucketNotificationConfiguration' };
      const command = new GetBucketNotificationConfigurationCommand({ Bucket: bucket, ExpectedBucketOwner: account });
      let xml: string | undefined;
      const reply = await ask(question, command, signal, async (response) => {
        if (!hasBody(response)) return;
        xml = (await buffer(response.body)).toString('utf8');
        Object.assign(response, { body: READ_ALREADY });
      });
      if (!reply.ok) throw readFault(question, reply, account);
      if (xml === undefined || isRepeated(reply.answer)) {
        throw new FaultError('connect.unavailable', `${questionText(question)}: the answer has no body, or comes from a cache`);
      }
      return xml;
    },
    /**
     * Replaces the whole configuration. Throws `connect.overlap` for S3's two errors about overlaps, `connect.destination` if S3 cannot
     * validate a destination, and `connect.busy` if another change of the bucket is under way.
     */
    async putNotification(
      { bucket, region, account }: OwnedBucket,
      configuration: NotificationConfiguration,
      { skipValidation }: { readonly skipValidation: boolean },
      signal?: AbortSignal,
    ): Promise<void> {
      const question = { bucket, region, operation: 'PutBucketNotificationConfiguration' };
      const command = new PutBucketNotificationConfigurationCommand({
        Bucket: bucket,
        ExpectedBucketOwner: account,
        NotificationConfiguration: sdkNotification.parse(sdkConfiguration(configuration)),
        ...(skipValidation && { SkipDestinationValidation: true }),
      });
      const reply = await askOnce(question, command, signal);
      if (!reply.ok) throw writeFault(question, reply, account);
    },
  };
}

/** The most characters of AWS's text in a reason. */
const TEXT_MAX = 500;

function readFault(question: S3Question, refusal: S3Refusal, account: string): Error {
  return denial(question, refusal, { account, action: 's3:GetBucketNotification' }) ?? s3Fault(question, refusal);
}

/** S3's own texts: the codes of these errors are too general. https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const REFUSALS: readonly (readonly [RequestErrorCode, RegExp])[] = [
  ['connect.overlap', /Configurations overlap|Configuration is ambiguously defined/i],
  ['connect.destination', /Unable to validate the following destination configurations/i],
];

function writeFault(question: S3Question, refusal: S3Refusal, account: string): Error {
  const { error } = refusal;
  const text = error instanceof Error ? error.message : '';
  const [code] = REFUSALS.find(([, pattern]) => pattern.test(text)) ?? [];
  if (code !== undefined) return new RequestError(code, `${questionText(question)}: ${printable(text, TEXT_MAX)}`);
  if (error instanceof Error && error.name === 'OperationAborted') {
    return new RequestError(
      'connect.busy',
      `${questionText(question)}: another change to the bucket is in progress (${printable(text, TEXT_MAX)}): repeat this in a minute`,
    );
  }
  return denial(question, refusal, { account, action: 's3:PutBucketNotification' }) ?? s3Fault(question, refusal);
}

function denial(
  question: S3Question,
  refusal: S3Refusal,
  { account, action }: { readonly account: string; readonly action: string },
): Error | undefined {
  const fault = s3Fault(question, refusal);
  if (fault.code !== 'object.denied') return undefined;
  const reason = `the permission ${action} is missing, or the bucket does not belong to the account ${account}`;
  return new RequestError('connect.denied', `${questionText(question)} is denied: ${reason}`, { action });
}
