/** Reads trails of CloudTrail and their selectors, and writes selectors. */
import {
  DescribeTrailsCommand,
  GetEventSelectorsCommand,
  GetTrailStatusCommand,
  PutEventSelectorsCommand,
  type CloudTrailClient,
  type PutEventSelectorsCommandInput,
  type Trail,
} from '@aws-sdk/client-cloudtrail';
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import { parseArn } from '../names.rules.ts';
import type { ObservedTrail } from '../plan.rules.ts';
import { parseSelectors, selectorsInput, type Selectors } from '../trail.rules.ts';
import { ask, type At, type ClientsFor } from './refusals.ts';

/** What the plan has checked is sent as it is. */
const inputSchema = z.custom<Pick<PutEventSelectorsCommandInput, 'EventSelectors' | 'AdvancedEventSelectors'>>(
  (value) => typeof value === 'object',
);

/** Creates the functions. The SDK's client is loaded only when a trail is needed. */
export function createTrailProvision({ clientFor, writerFor }: ClientsFor<Promise<CloudTrailClient>>) {
  async function observe({ TrailARN: arn = '', HomeRegion = '', S3BucketName }: Trail, signal?: AbortSignal): Promise<ObservedTrail> {
    // requests about a trail are answered completely in its home region only
    const client = await clientFor({ region: HomeRegion });
    const status = new GetTrailStatusCommand({ Name: arn });
    const { IsLogging } = await ask('cloudtrail:GetTrailStatus', arn, (options) => client.send(status, options), signal);
    const select = new GetEventSelectorsCommand({ TrailName: arn });
    const selectors = await ask('cloudtrail:GetEventSelectors', arn, (options) => client.send(select, options), signal);
    return {
      arn,
      homeRegion: HomeRegion,
      isLogging: IsLogging === true,
      ...(S3BucketName !== undefined && { logBucket: S3BucketName }),
      selectors: parseSelectors(selectors),
    };
  }

  return {
    /** The trail with this ARN. */
    async trailOf(trailArn: string, signal?: AbortSignal): Promise<ObservedTrail | 'absent'> {
      const client = await clientFor(placeOf(trailArn));
      // trails of an organisation are listed in the accounts of its members as well
      const describe = new DescribeTrailsCommand({ includeShadowTrails: true });
      const { trailList = [] } = await ask('cloudtrail:DescribeTrails', '', (options) => client.send(describe, options), signal);
      const found = trailList.find(({ TrailARN }) => TrailARN === trailArn);
      return found === undefined ? 'absent' : observe(found, signal);
    },
    /** Replaces all selectors of the trail, in its home region. */
    async putSelectors(trailArn: string, selectors: Selectors, signal?: AbortSignal): Promise<void> {
      const client = await writerFor(placeOf(trailArn));
      const command = new PutEventSelectorsCommand({ TrailName: trailArn, ...inputSchema.parse(selectorsInput(selectors)) });
      await ask('cloudtrail:PutEventSelectors', trailArn, (options) => client.send(command, options), signal);
    },
  };
}

function placeOf(trailArn: string): At {
  const at = parseArn(trailArn);
  if (at === undefined) throw new FaultError('connect.unavailable', `${trailArn} is not the ARN of a trail`);
  return at;
}
