/** Trails and keys on moto, because LocalStack has no CloudTrail, and its KMS need not run. */
import { CloudTrailClient, CreateTrailCommand, StartLoggingCommand } from '@aws-sdk/client-cloudtrail';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAskKms } from '../../../src/adapters/aws/kms.ts';
import { createKeyProvision } from '../../../src/adapters/aws/provision/keys.ts';
import { createTrailProvision } from '../../../src/adapters/aws/provision/trails.ts';
import { advancedSelector, withSelector } from '../../../src/domain/provisioning/trail.ts';
import { canRun } from '../../docs/programs.ts';
import { MOTO, startMoto } from '../../support/servers/moto.ts';

const REGION = 'us-east-1';
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const photos = { bucket: 'photos', partition: 'aws' };

describe.skipIf(!canRun('trails', [MOTO]))('a trail on moto', () => {
  let moto: Awaited<ReturnType<typeof startMoto>>;
  let client: CloudTrailClient;
  let s3: S3Client;
  beforeAll(async () => {
    moto = await startMoto();
    const common = { endpoint: moto.endpoint, region: REGION, credentials };
    client = new CloudTrailClient(common);
    s3 = new S3Client({ ...common, forcePathStyle: true });
  });
  afterAll(() => {
    moto.stop();
    client.destroy();
    s3.destroy();
  });

  it('is found by its ARN or the bucket of its logs, with its selectors, and takes others', async () => {
    await s3.send(new CreateBucketCommand({ Bucket: 'trail-logs' }));
    const { TrailARN: arn = '' } = await client.send(new CreateTrailCommand({ Name: 'audit', S3BucketName: 'trail-logs' }));
    const provision = createTrailProvision({ clientFor: async () => client });
    const [stopped] = await provision.trailsOf(REGION, { arn });
    expect(stopped).toMatchObject({
      arn,
      homeRegion: REGION,
      isMultiRegion: false,
      isOrganization: false,
      isLogging: false,
      logBucket: 'trail-logs',
    });
    await client.send(new StartLoggingCommand({ Name: 'audit' }));
    for (const before of [
      stopped!.selectors!,
      { kind: 'advanced' as const, list: [advancedSelector({ bucket: 'finance', partition: 'aws' })] },
    ]) {
      const after = withSelector(before, photos);
      await provision.putSelectors(arn, after);
      const [found] = await provision.trailsOf(REGION, { logBucket: 'trail-logs' });
      expect(found).toMatchObject({ isLogging: true, selectors: after });
    }
    expect(await provision.trailsOf(REGION, { arn: `${arn}-absent` })).toEqual([]);
    expect(await provision.trailsOf(REGION, { logBucket: 'absent' })).toEqual([]);
  });

  it('has keys beside it, whose policies are read by ID, ARN and alias', async () => {
    const askKms = createAskKms({ endpoint: moto.endpoint, credentials, timeoutMs: 60_000, proxyEnv: undefined });
    // the product only reads
    const write = (operation: string, input: Readonly<Record<string, string>>) => askKms(REGION, operation as 'DescribeKey', input);
    const policy = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Sid: 'a', Effect: 'Allow', Principal: '*', Action: 'kms:*', Resource: '*' }],
    });
    const { KeyMetadata } = (await write('CreateKey', { Policy: policy })) as { KeyMetadata: { KeyId: string; Arn: string } };
    await write('CreateAlias', { AliasName: 'alias/tally', TargetKeyId: KeyMetadata.KeyId });
    const { keyOf } = createKeyProvision({ askKms });
    for (const name of [KeyMetadata.KeyId, KeyMetadata.Arn, 'alias/tally']) {
      expect(await keyOf(REGION, name)).toEqual({ arn: KeyMetadata.Arn, isManagedByAws: false, policy });
    }
    await expect(keyOf(REGION, 'alias/absent')).rejects.toMatchObject({
      code: 'connect.unavailable',
      message: expect.stringContaining('no key alias/absent'),
    });
  });
});
