/** The permissions of `tally iam-policy` are what the code asks of AWS. connect/aws/iam-policy.test.ts uses each but those of trails and keys. */
import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { permissions } from '../../src/connect/permissions.rules.ts';
import { ROOT, textOf } from './pages.ts';

/** What IAM calls by another name than the SDK. HEAD and LIST stand for the bytes and the bucket. */
const RENAMED: Readonly<Record<string, readonly string[]>> = {
  's3:HeadObject': ['s3:GetObject', 's3:GetObjectVersion'],
  's3:GetObjectTagging': ['s3:GetObjectTagging', 's3:GetObjectVersionTagging'],
  's3:HeadBucket': ['s3:ListBucket'],
  's3:ListObjectsV2': ['s3:ListBucket'],
  's3:ListMultipartUploads': ['s3:ListBucketMultipartUploads'],
  's3:GetBucketLifecycleConfiguration': ['s3:GetLifecycleConfiguration'],
  's3:GetBucketNotificationConfiguration': ['s3:GetBucketNotification'],
  's3:PutBucketNotificationConfiguration': ['s3:PutBucketNotification'],
  // with its tags
  'events:PutRule': ['events:PutRule', 'events:TagResource'],
  // it needs no permission
  'sts:GetCallerIdentity': [],
};
/** SQS itself asks KMS, as the caller, where a queue has a key of the user's own. */
const OF_SQS = ['kms:Decrypt', 'kms:GenerateDataKey'];

/** The requests that the source can send, each as `service:Name`. */
function requestsInSource(): readonly string[] {
  return globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [...textOf(file).matchAll(/import \{([^}]+)\} from '@aws-sdk\/client-(\w+)'/g)].flatMap(([, names = '', client = '']) =>
      [...names.matchAll(/\b([A-Z]\w+?)(?:Batch)?Command\b/g)].map(([, name]) => `${client === 'eventbridge' ? 'events' : client}:${name}`),
    ),
  );
}

it('permit what the code asks of AWS, and nothing else', () => {
  const asked = requestsInSource().flatMap((request) => RENAMED[request] ?? [request]);
  const permitted = permissions.flatMap(({ actions }) => actions);
  expect([...new Set(permitted)].toSorted()).toEqual([...new Set([...asked, ...OF_SQS])].toSorted());
});
