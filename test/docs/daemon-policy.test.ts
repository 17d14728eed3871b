/** config/aws/daemon-policy.json permits what the code asks of AWS. docs/reference/permissions.md is written from the same table (generated.test.ts). */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ROOT, textOf } from './pages.ts';

describe('config/aws/daemon-policy.json', () => {
  const statementSchema = z.object({ Action: z.union([z.string().transform((action) => [action]), z.array(z.string())]) });
  const policy = z
    .object({ Version: z.literal('2012-10-17'), Statement: z.array(statementSchema) })
    .parse(JSON.parse(textOf('config/aws/daemon-policy.json')));

  it('permits what the code asks of AWS, and nothing else', async () => {
    const commands = (await commandsInSource()).filter((command) => !OF_PERSONS.has(command));
    const asked = commands.flatMap((command) => ACTIONS[command] ?? [`no action is known for ${command}`]);
    const permitted = policy.Statement.flatMap(({ Action }) => Action);
    expect([...new Set(permitted)].toSorted()).toEqual([...new Set([...asked, ...ACTIONS_OF_SQS])].toSorted());
  });
});

/** What IAM calls the permission of each request that the code can make. HEAD and LIST stand for the bytes and the bucket. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  ReceiveMessageCommand: ['sqs:ReceiveMessage'],
  SendMessageCommand: ['sqs:SendMessage'],
  DeleteMessageBatchCommand: ['sqs:DeleteMessage'],
  ChangeMessageVisibilityBatchCommand: ['sqs:ChangeMessageVisibility'],
  GetQueueAttributesCommand: ['sqs:GetQueueAttributes'],
  GetQueueUrlCommand: ['sqs:GetQueueUrl'],
  ConfirmSubscriptionCommand: ['sns:ConfirmSubscription'],
  GetTopicAttributesCommand: ['sns:GetTopicAttributes'],
  HeadObjectCommand: ['s3:GetObject', 's3:GetObjectVersion'],
  GetObjectTaggingCommand: ['s3:GetObjectTagging', 's3:GetObjectVersionTagging'],
  HeadBucketCommand: ['s3:ListBucket'],
  ListObjectsV2Command: ['s3:ListBucket'],
  GetBucketVersioningCommand: ['s3:GetBucketVersioning'],
  GetBucketLifecycleConfigurationCommand: ['s3:GetLifecycleConfiguration'],
  ListMultipartUploadsCommand: ['s3:ListBucketMultipartUploads'],
  GetBucketNotificationConfigurationCommand: ['s3:GetBucketNotification'],
  ListSubscriptionsByTopicCommand: ['sns:ListSubscriptionsByTopic'],
  GetSubscriptionAttributesCommand: ['sns:GetSubscriptionAttributes'],
  PublishCommand: ['sns:Publish'],
  DescribeRuleCommand: ['events:DescribeRule'],
  ListRulesCommand: ['events:ListRules'],
  ListTargetsByRuleCommand: ['events:ListTargetsByRule'],
  ListTagsForResourceCommand: ['events:ListTagsForResource'],
  ListQueueTagsCommand: ['sqs:ListQueueTags'],
  DescribeTrailsCommand: ['cloudtrail:DescribeTrails'],
  GetTrailStatusCommand: ['cloudtrail:GetTrailStatus'],
  GetEventSelectorsCommand: ['cloudtrail:GetEventSelectors'],
};
/** A person makes these: `tally iam-policy --for connecting` and `tally iam-policy --for setup`. The last one needs no permission. */
const OF_PERSONS = new Set([
  'CreateTopicCommand',
  'SetTopicAttributesCommand',
  'SubscribeCommand',
  'UnsubscribeCommand',
  'SetSubscriptionAttributesCommand',
  'SetQueueAttributesCommand',
  'CreateQueueCommand',
  'PutBucketNotificationConfigurationCommand',
  'PutRuleCommand',
  'PutTargetsCommand',
  'RemoveTargetsCommand',
  'DeleteRuleCommand',
  'PutEventSelectorsCommand',
  'TagQueueCommand',
  'TagResourceCommand',
  'GetCallerIdentityCommand',
]);
/** SQS itself asks KMS, as the caller, where a queue has a key of the user's own. */
const ACTIONS_OF_SQS = ['kms:Decrypt', 'kms:GenerateDataKey'];

/** The commands of the AWS SDK that the source imports. */
async function commandsInSource(): Promise<readonly string[]> {
  const files = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'));
  const texts = await Promise.all(files.map((name) => readFile(join(ROOT, 'src', name), 'utf8')));
  const imports = texts.flatMap((text) =>
    [...text.matchAll(/import \{([^}]+)\} from '@aws-sdk\/client-\w+'/g)].map(([, names = '']) => names),
  );
  const commands = imports.flatMap((names) => names.match(/\b[A-Z]\w+Command\b/g) ?? []);
  return [...new Set(commands)];
}
