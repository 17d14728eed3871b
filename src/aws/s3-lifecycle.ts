/** Reads a bucket's lifecycle rules, and its unfinished uploads. */
import { defined } from '../base/defined.ts';
import {
  type GetBucketLifecycleConfigurationCommandOutput,
  type S3Client,
  GetBucketLifecycleConfigurationCommand,
  ListMultipartUploadsCommand,
} from '@aws-sdk/client-s3';
import type { LifecycleRule } from './lifecycle.rules.ts';
import { FaultError } from '../base/fault.ts';
import type { BucketLifecycle } from './storage.ts';
import type { Clock } from '../process/clock.ts';
import { createAsk, isFromS3, ownerInput } from './s3-ask.ts';
import { questionText, s3Fault, type S3Question, type S3Refusal } from './faults.ts';

interface S3LifecycleDependencies {
  readonly clientFor: (region: string) => S3Client;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

type S3Rule = NonNullable<GetBucketLifecycleConfigurationCommandOutput['Rules']>[number];

/** Creates the reader. Needs s3:GetLifecycleConfiguration, and s3:ListBucketMultipartUploads for uploads. */
export function createS3Lifecycle({ clientFor, clock }: S3LifecycleDependencies): BucketLifecycle {
  const { ask } = createAsk(clientFor, clock);
  return {
    async rulesOf(location, signal) {
      const question = { ...location, operation: 'GetBucketLifecycleConfiguration' };
      const command = new GetBucketLifecycleConfigurationCommand({ Bucket: location.bucket, ...ownerInput(location) });
      const reply = await ask(question, command, signal);
      if (reply.ok) {
        // a bucket without rules answers with an error: this is not its configuration
        if (reply.output.Rules === undefined && !isFromS3(reply.answer))
          throw new FaultError('object.failed', `${questionText(question)}: the answer contains no rules and may not come from S3`);
        return (reply.output.Rules ?? []).map(ruleOf);
      }
      if (reply.error instanceof Error && reply.error.name === 'NoSuchLifecycleConfiguration') return [];
      throw refusalOf(question, reply);
    },

    async uploadsOf(location, signal) {
      const question = { ...location, operation: 'ListMultipartUploads' };
      const command = new ListMultipartUploadsCommand({ Bucket: location.bucket, ...ownerInput(location) });
      const reply = await ask(question, command, signal);
      if (!reply.ok) throw refusalOf(question, reply);
      const { Uploads = [], IsTruncated: is_more = false } = reply.output;
      const begun = Uploads.flatMap(({ Initiated }) => (Initiated === undefined ? [] : [Initiated.getTime()]));
      return begun.length === 0 ? undefined : { count: begun.length, is_more, oldest_at: new Date(Math.min(...begun)).toISOString() };
    },
  };
}

function refusalOf(question: S3Question, refusal: S3Refusal): FaultError {
  const fault = s3Fault(question, refusal);
  return fault.code === 'object.denied' ? new FaultError('lifecycle.denied', fault.reason, { cause: fault }) : fault;
}

function ruleOf(rule: S3Rule): LifecycleRule {
  const { ID = '', Status, Expiration } = rule;
  return {
    id: ID,
    isEnabled: Status === 'Enabled',
    ...filterOf(rule),
    ...(Expiration?.Days !== undefined && { expiresAfterDays: Expiration.Days }),
    ...(Expiration?.Date !== undefined && { expiresAtMs: Expiration.Date.getTime() }),
  };
}

/** A filter has one condition, or several under And. A rule of the old form has a prefix and no filter. */
function filterOf(rule: S3Rule): Pick<LifecycleRule, 'prefix' | 'tags' | 'sizeAbove' | 'sizeBelow'> {
  const { Tag, And, ...one } = rule.Filter ?? {};
  // oxlint-disable-next-line typescript/no-deprecated -- S3 returns it for rules of the old form
  const { Prefix = rule.Prefix, ObjectSizeGreaterThan, ObjectSizeLessThan } = { ...one, ...And };
  const tags = [...(Tag === undefined ? [] : [Tag]), ...(And?.Tags ?? [])];
  return {
    prefix: Prefix ?? '',
    tags: Object.fromEntries(tags.map(({ Key = '', Value = '' }) => [Key, Value])),
    ...defined({ sizeAbove: ObjectSizeGreaterThan, sizeBelow: ObjectSizeLessThan }),
  };
}
