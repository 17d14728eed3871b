/** Trails on moto, because LocalStack has no CloudTrail. */
import {
  CloudTrailClient,
  CreateTrailCommand,
  GetEventSelectorsCommand,
  PutEventSelectorsCommand,
  StartLoggingCommand,
  type EventSelector,
} from '@aws-sdk/client-cloudtrail';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTrailProvision } from '../../../src/connect/aws/trails.ts';
import { advancedSelector, withSelector } from '../../../src/connect/trail.rules.ts';
import { canRun } from '../../docs/programs.ts';
import { MOTO, startMoto } from '../../support/servers/moto.ts';
import { REGISTRY } from '../../support/fakes/aws-parts.ts';
import { startWorld } from '../world.ts';

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
    const provision = createTrailProvision({ clientFor: async () => client, writerFor: async () => client });
    const stopped = { arn, homeRegion: REGION, isLogging: false, logBucket: 'trail-logs', selectors: { kind: 'basic' } };
    expect(await provision.trailOf(arn)).toMatchObject(stopped);
    await client.send(new StartLoggingCommand({ Name: 'audit' }));
    const finance = advancedSelector({ bucket: 'finance', partition: 'aws', registry: REGISTRY });
    const after = withSelector({ kind: 'advanced', list: [finance] }, photos);
    await provision.putSelectors(arn, after);
    expect(await provision.trailOf(arn)).toMatchObject({ isLogging: true, selectors: after });
    expect(await provision.trailOf(`${arn}-absent`)).toBe('absent');
  });

  it('has the bucket beside what AWS gives a new trail to record, until the bucket is removed', async () => {
    await s3.send(new CreateBucketCommand({ Bucket: 'new-logs' }));
    const { TrailARN: trailArn = '' } = await client.send(new CreateTrailCommand({ Name: 'new', S3BucketName: 'new-logs' }));
    await client.send(new StartLoggingCommand({ Name: 'new' }));
    // moto gives a new trail none
    const management = { IncludeManagementEvents: true, DataResources: [], ExcludeManagementEventSources: [] };
    const EventSelectors = [{ ReadWriteType: 'All', ...management }] satisfies EventSelector[];
    await client.send(new PutEventSelectorsCommand({ TrailName: 'new', EventSelectors }));
    const selectors = async () => (await client.send(new GetEventSelectorsCommand({ TrailName: 'new' }))).EventSelectors;
    const before = await selectors();
    const world = await startWorld({ trailArn });
    Object.assign(world.aws, createTrailProvision({ clientFor: async () => client, writerFor: async () => client }));
    const written = { ReadWriteType: 'WriteOnly', IncludeManagementEvents: false };
    const selecting = (...Values: string[]) => ({ ...written, DataResources: [{ Type: 'AWS::S3::Object', Values }] });
    for (const bucket of ['photos', 'videos']) {
      const request = { bucket, source: 'routed' } as const;
      const { token, foreign } = await world.plan(request);
      expect(foreign.map(({ kind }) => kind)).toEqual(['trail']);
      expect(await world.apply(request, { token })).toMatchObject({ state: 'applied' });
    }
    expect(await selectors()).toEqual([...before!, selecting('arn:aws:s3:::photos/', 'arn:aws:s3:::videos/')]);
    expect(await world.remove()).toEqual([]);
    expect(await selectors()).toEqual([...before!, selecting('arn:aws:s3:::videos/')]);
    expect(await world.remove('videos')).toEqual([]);
    expect(await selectors()).toEqual(before);
  });
});
