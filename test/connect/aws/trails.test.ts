/** Trails on moto, because LocalStack has no CloudTrail. */
import { CloudTrailClient, CreateTrailCommand, StartLoggingCommand } from '@aws-sdk/client-cloudtrail';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTrailProvision } from '../../../src/connect/aws/provisioner.ts';
import { advancedSelector, withSelector } from '../../../src/connect/trail.rules.ts';
import { canRun } from '../../docs/programs.ts';
import { MOTO, startMoto } from '../../support/servers/moto.ts';
import { REGISTRY } from '../../support/fakes/aws-parts.ts';

const REGION = 'us-east-1';
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const photos = { bucket: 'photos', partition: 'aws', registry: REGISTRY };

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

  it('is found by its ARN, with its selectors, and takes others', async () => {
    await s3.send(new CreateBucketCommand({ Bucket: 'trail-logs' }));
    const { TrailARN: arn = '' } = await client.send(new CreateTrailCommand({ Name: 'audit', S3BucketName: 'trail-logs' }));
    const provision = createTrailProvision({ trailsFor: async () => client, once: { trailsFor: async () => client } });
    const stopped = { arn, homeRegion: REGION, isLogging: false, logBucket: 'trail-logs', selectors: { kind: 'basic' } };
    expect(await provision.trailOf(arn)).toMatchObject(stopped);
    await client.send(new StartLoggingCommand({ Name: 'audit' }));
    const finance = advancedSelector({ bucket: 'finance', partition: 'aws', registry: REGISTRY });
    const after = withSelector({ kind: 'advanced', list: [finance] }, photos);
    await provision.putSelectors(arn, after);
    expect(await provision.trailOf(arn)).toMatchObject({ isLogging: true, selectors: after });
    expect(await provision.trailOf(`${arn}-absent`)).toBe('absent');
  });
});
