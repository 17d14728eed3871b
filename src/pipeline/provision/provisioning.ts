/** The operations about connections: what they read, and who may see what. They are wired here once. */
import type { WishRequest } from '../../domain/provisioning/planning/apply-command.ts';
import type { ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { busNote, planOf, type Plan } from '../../domain/provisioning/planning/plan.ts';
import type { Wish } from '../../domain/provisioning/wiring.ts';
import type { Kept } from '../../domain/provisioning/planning/removal.ts';
import { docsPage } from '../../domain/doc-pages.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AwsReads, Provisioner } from '../ports/provision.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import { createApply, refuse, type Applied, type ApplyOptions } from './apply.ts';
import { createWishOf, type Wished, wishOfConnection } from './wishes.ts';
import { createDiagnose, type Diagnose } from './diagnose.ts';
import { createUnderLease } from './loop.ts';
import { createMake } from './make.ts';
import { createObserve } from './observe.ts';
import { createPause } from './pause.ts';
import { sendProbe } from './probe.ts';
import { createRemoveParts } from './remove.ts';
import { createSharedReads } from './shared-reads.ts';
import type { WithPorts } from '../ports/ports.ts';

interface ProvisionDependencies extends WithPorts<'state' | 'clock'> {
  readonly aws: Provisioner;
  readonly storage: Pick<ObjectStorage, 'regionOf' | 'versioningOf' | 'firstKey' | 'readVersion' | 'readTags'>;
  /** The bucket queue that plans connect to; absent if the settings name none. */
  readonly queueUrl: string | undefined;
  /** The other bucket queues of the settings. */
  readonly moreQueueUrls?: readonly string[];
  readonly isEmbedded: boolean;
  readonly trailArn?: string | undefined;
  readonly trailBucket?: string | undefined;
}

interface Planned {
  readonly plan: Plan;
  readonly connection: ConnectionRecord | undefined;
  /** Whether there is a record of the bucket. */
  readonly isConnected: boolean;
}

export interface Provisioning {
  /** Reads AWS and says what would change. */
  plan(request: WishRequest, signal?: AbortSignal): Promise<Planned>;
  /** Throws what would keep an apply from being made. Nothing is written or stored. */
  check(request: WishRequest, options: ApplyOptions, signal?: AbortSignal): Promise<void>;
  /** One pass of an apply, and the wish that it was for. */
  apply(request: WishRequest, options: ApplyOptions, signal?: AbortSignal): Promise<{ readonly wish: Wish; readonly applied: Applied }>;
  pause(bucket: string, signal: AbortSignal): Promise<ConnectionRecord>;
  resume(bucket: string, signal: AbortSignal): Promise<Applied>;
  /** Takes away what Tally made, or with `keepAws` only forgets it. Undefined: nothing was made. */
  remove(bucket: string, options: { readonly keepAws: boolean }, signal?: AbortSignal): Promise<readonly Kept[] | undefined>;
  /** Takes away what is left of the sources that the bucket had before, once the gap of the change is closed, and returns what stays. */
  removeEarlier(bucket: string, signal?: AbortSignal): Promise<readonly Kept[] | undefined>;
  /** Publishes a probe through the bucket's topic, if that is Tally's and one is due. `isLost`: the last one did not arrive. */
  probe(connection: ConnectionRecord, isLost: boolean, signal?: AbortSignal): Promise<void>;
  /** What is wrong with the connection of a bucket. What cannot be read is a finding too. */
  readonly diagnose: Diagnose;
  /** The same for the watch, by what buckets share as it was up to a minute ago. */
  readonly diagnoseSharing: Diagnose;
}

export function createProvisioning(dependencies: ProvisionDependencies): Provisioning {
  const { state, aws, clock, queueUrl, moreQueueUrls = [] } = dependencies;
  const wishOf = createWishOf(dependencies);

  /** The wish of a request about parts that are to be made. */
  async function wanted(request: WishRequest, signal?: AbortSignal): Promise<Wished> {
    const wished = await wishOf(request, signal);
    refuseOtherAccount(wished.wish);
    return wished;
  }

  const observe = createObserve(aws);
  const underLease = createUnderLease({ state, clock, make: createMake(aws, clock) });
  const parts = { state, aws, clock, observe, underLease };
  const apply = createApply(parts);
  const removeParts = createRemoveParts(parts);
  const pausing = createPause({ ...parts, apply });

  function diagnoseBy(by: AwsReads): Diagnose {
    return createDiagnose({
      state,
      storage: dependencies.storage,
      clock,
      queueUrls: queueUrl === undefined ? [] : [queueUrl, ...moreQueueUrls],
      aws: by,
      wishOf: createWishOf({ ...dependencies, aws: by }),
      observe: createObserve(by),
    });
  }

  return {
    async plan(request, signal) {
      const { wish, connection, record } = await wanted(request, signal);
      const plan = planOf(wish, await observe(wish, signal));
      const isConnected = record !== undefined;
      const makesRule = plan.changes.some(({ part, action }) => part === 'rule' && action === 'create');
      const notes = makesRule ? busNote(wish, await aws.ruleCount(wish, signal)) : [];
      return { plan: { ...plan, findings: [...plan.findings, ...notes] }, connection, isConnected };
    },
    async check(request, options, signal) {
      const { wish, connection } = await wanted(request, signal);
      refuse(planOf(wish, await observe(wish, signal)), connection, { ...options, asked: request });
    },
    async apply(request, options, signal) {
      const { wish, record } = await wanted(request, signal);
      if (record === undefined)
        throw new RequestError(
          'bucket.not-connected',
          `${request.bucket} is not connected: connect it with \`tally bucket add ${request.bucket}\``,
        );
      return { wish, applied: await apply(wish, { ...options, asked: request }, signal) };
    },
    pause: (bucket, signal) => pausing.pause(bucket, signal),
    resume: (bucket, signal) => pausing.resume(bucket, signal),
    async remove(bucket, { keepAws }, signal) {
      if (!keepAws) return removeParts.all(bucket, signal);
      await removeParts.forget(bucket, signal);
      return undefined;
    },
    removeEarlier: (bucket, signal) => removeParts.earlier(bucket, signal),
    probe: (connection, isLost, signal) => sendProbe({ state, clock, aws }, wishOfConnection(connection), isLost, signal),
    diagnose: diagnoseBy(aws),
    diagnoseSharing: diagnoseBy(createSharedReads(aws, clock)),
  };
}

/** Tally has no credentials for another account: its owner sends the events to a topic, and lets the bucket be read. */
function refuseOtherAccount({ bucket, bucketAccount, account, source }: Wish): void {
  if (bucketAccount === account || source === 'topic') return;
  throw new RequestError(
    'connect.other-account',
    `${bucket} belongs to the account ${bucketAccount}, and the bucket queue to ${account}. Let its owner send the events to a topic there, and connect it with \`tally bucket add ${bucket} --bucket-account ${bucketAccount} --source topic --topic ARN\` (${docsPage('docs/guides/connect.md#another-region-or-account')})`,
  );
}
