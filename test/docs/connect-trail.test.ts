/** The blocks of docs/guides/connect.md for CloudTrail and KMS, which LocalStack lacks, are run on moto. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shellBlocks } from './connect-blocks.ts';
import type { PageShell } from './page-shell.ts';
import { JQ, openPageShell } from './page-shell.ts';
import { AWS_CLI } from '../support/servers/aws-cli.ts';
import { MOTO, startMoto } from '../support/servers/moto.ts';
import { canRun } from './programs.ts';

const runs = canRun('the CloudTrail and KMS blocks of docs/guides/connect.md', [AWS_CLI, JQ, MOTO]);
/** Dozens of commands. */
const TEST_TIMEOUT_MS = 600_000;
const OPERATIONS = ['PutObject', 'CopyObject', 'CompleteMultipartUpload', 'DeleteObject', 'DeleteObjects'];

describe.skipIf(!runs)('docs/guides/connect.md on moto', { timeout: TEST_TIMEOUT_MS }, () => {
  let moto: Awaited<ReturnType<typeof startMoto>>;
  let shell: PageShell;
  beforeAll(async () => {
    moto = await startMoto();
    shell = await openPageShell(moto.endpoint);
  }, TEST_TIMEOUT_MS);
  afterAll(async () => {
    moto.stop();
    await shell.dispose();
  });

  const [readAndAdd = '', write = '', makeTrail = ''] = shellBlocks("Step 2: let a trail record the bucket's data events");

  async function selectors(trail: string): Promise<Readonly<Record<string, readonly unknown[]>>> {
    const answer = await shell.aws('cloudtrail', 'get-event-selectors', '--trail-name', trail);
    return JSON.parse(answer) as Record<string, unknown[]>;
  }

  /** The two blocks for a trail that exists, as often as somebody repeats them. */
  async function addToTrail(trail: string, bucket: string, times = 1): Promise<void> {
    for (let time = 0; time < times; time++) {
      await shell.runBlock(readAndAdd, { TRAIL: trail, BUCKET: bucket });
      expect(await shell.runBlock(write, { TRAIL: trail })).toMatch(/true\n$/);
    }
  }

  function advancedSelector(bucket: string): object {
    return {
      Name: `tally ${bucket}`,
      FieldSelectors: [
        { Field: 'eventCategory', Equals: ['Data'] },
        { Field: 'resources.type', Equals: ['AWS::S3::Object'] },
        { Field: 'resources.ARN', StartsWith: [`arn:aws:s3:::${bucket}/`] },
        { Field: 'readOnly', Equals: ['false'] },
        { Field: 'eventName', Equals: OPERATIONS },
      ],
    };
  }

  it('makes a trail of the bucket’s data events, and adds another bucket to its advanced selectors', async () => {
    await shell.runBlock(makeTrail, { BUCKET: 'first', LOG_BUCKET: `${shell.prefix}-log` });
    expect((await selectors(shell.prefix))['AdvancedEventSelectors']).toEqual([advancedSelector('first')]);
    // repeated, it adds nothing
    await addToTrail(shell.prefix, 'second', 2);
    expect((await selectors(shell.prefix))['AdvancedEventSelectors']).toEqual([advancedSelector('first'), advancedSelector('second')]);
  });

  it('adds the bucket to the basic selectors of a trail, and keeps those that it has', async () => {
    const trail = `${shell.prefix}-basic`;
    await shell.aws('s3', 'mb', `s3://${trail}`);
    await shell.aws('cloudtrail', 'create-trail', '--name', trail, '--s3-bucket-name', trail);
    await shell.aws('cloudtrail', 'start-logging', '--name', trail);
    const management = { ReadWriteType: 'All', IncludeManagementEvents: true, DataResources: [], ExcludeManagementEventSources: [] };
    await shell.aws('cloudtrail', 'put-event-selectors', '--trail-name', trail, '--event-selectors', JSON.stringify([management]));
    // repeated, it adds nothing
    await addToTrail(trail, 'photos', 2);
    const DataResources = [{ Type: 'AWS::S3::Object', Values: ['arn:aws:s3:::photos/'] }];
    expect((await selectors(trail))['EventSelectors']).toMatchObject([
      management,
      { ReadWriteType: 'WriteOnly', IncludeManagementEvents: false, DataResources },
    ]);
  });

  it('makes a key that the three services may use', async () => {
    const [makeKey = ''] = shellBlocks('Encryption with your own key');
    await shell.runBlock(makeKey, { ALIAS: 'alias/tally' });
    const { KeyMetadata } = JSON.parse(await shell.aws('kms', 'describe-key', '--key-id', 'alias/tally')) as {
      KeyMetadata: { KeyId: string };
    };
    const { Policy } = JSON.parse(await shell.aws('kms', 'get-key-policy', '--key-id', KeyMetadata.KeyId, '--policy-name', 'default')) as {
      Policy: string;
    };
    expect(JSON.parse(Policy)).toMatchObject({
      Statement: [
        { Principal: { AWS: 'arn:aws:iam::123456789012:root' }, Action: 'kms:*' },
        { Principal: { Service: ['s3.amazonaws.com', 'sns.amazonaws.com', 'events.amazonaws.com'] } },
      ],
    });
  });
});
