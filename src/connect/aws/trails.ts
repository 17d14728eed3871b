/** Reads CloudTrail's trails and their selectors, and writes selectors. */
import {
  DescribeTrailsCommand,
  GetEventSelectorsCommand,
  GetTrailStatusCommand,
  PutEventSelectorsCommand,
  type PutEventSelectorsCommandInput,
  type Trail,
} from '@aws-sdk/client-cloudtrail';
import { z } from 'zod';
import { defined } from '../../base/defined.ts';
import { arnOf } from '../names.rules.ts';
import type { ObservedTrail } from '../plan.rules.ts';
import { parseSelectors, selectorsInput, type Selectors } from '../trail.rules.ts';
import { ask, type ClientsOf } from './ask.ts';

/** The plan has checked the selectors, so they are sent unchanged. */
const inputSchema = z.custom<Pick<PutEventSelectorsCommandInput, 'EventSelectors' | 'AdvancedEventSelectors'>>(
  (value) => typeof value === 'object',
);

/** Creates the functions. The SDK's client is loaded only when a trail is needed. */
export function createTrailProvision({ trailsFor, once }: ClientsOf<'trailsFor'>) {
  async function observe(
    { TrailARN: arn = '', HomeRegion = '', S3BucketName: logBucket }: Trail,
    signal?: AbortSignal,
  ): Promise<ObservedTrail> {
    // only its home region answers completely about a trail
    const client = await trailsFor(HomeRegion);
    const { IsLogging } = await ask(client, new GetTrailStatusCommand({ Name: arn }), arn, signal);
    const selectors = await ask(client, new GetEventSelectorsCommand({ TrailName: arn }), arn, signal);
    return {
      arn,
      homeRegion: HomeRegion,
      isLogging: IsLogging === true,
      selectors: parseSelectors(selectors),
      ...defined({ logBucket }),
    };
  }

  return {
    /** The trail with this ARN. */
    async trailOf(trailArn: string, signal?: AbortSignal): Promise<ObservedTrail | 'absent'> {
      // includes an organisation's trails, which its members' accounts list too
      const describe = new DescribeTrailsCommand({ includeShadowTrails: true });
      const { trailList = [] } = await ask(await trailsFor(arnOf(trailArn).region), describe, '', signal);
      const found = trailList.find(({ TrailARN }) => TrailARN === trailArn);
      return found === undefined ? 'absent' : observe(found, signal);
    },
    /** Replaces all selectors of the trail, in its home region. */
    async putSelectors(trailArn: string, selectors: Selectors, signal?: AbortSignal): Promise<void> {
      const command = new PutEventSelectorsCommand({ TrailName: trailArn, ...inputSchema.parse(selectorsInput(selectors)) });
      await ask(await once.trailsFor(arnOf(trailArn).region), command, trailArn, signal);
    },
  };
}
