/** The operations about connections: what they read, and who may see what. They are wired here once. */
import { docsPage } from '../../domain/doc-pages.ts';
import type { ConnectionRecord, ConnectionSpec } from '../../domain/provisioning/connection.ts';
import type { ConnectionRequest, Kept, Plan } from '../../domain/provisioning/plan.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { WithPorts } from '../ports/ports.ts';
import type { Provisioner } from '../ports/provision.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import { apply, refuse, resume, type Applied, type ApplyOptions } from './apply.ts';
import { diagnose, type Diagnose } from './diagnose.ts';
import { createUnderLease } from './loop.ts';
import { sendProbe } from './probe.ts';
import { forgetParts, pause, removeEarlier, removeParts } from './remove.ts';
import { requested, type Requested, type RequestParts } from './requested.ts';
import { busNote } from './sources/eventbridge.ts';
import { createLookAt, diff } from './sources/sources.ts';

interface ProvisionDependencies extends Omit<RequestParts, 'aws' | 'storage' | 'state'>, WithPorts<'state' | 'clock'> {
  readonly aws: Provisioner;
  readonly storage: Pick<ObjectStorage, 'regionOf' | 'versioningOf' | 'firstKey' | 'readVersion' | 'readTags'>;
  /** The other bucket queues of the settings. */
  readonly moreQueueUrls?: readonly string[];
}

interface Planned {
  readonly plan: Plan;
  readonly connection: ConnectionRecord | undefined;
  /** Whether there is a record of the bucket. */
  readonly isConnected: boolean;
}

export interface Provisioning {
  /** Reads AWS and says what would change. */
  plan(request: ConnectionRequest, signal?: AbortSignal): Promise<Planned>;
  /** Throws what would keep an apply from being made. Nothing is written or stored. */
  check(request: ConnectionRequest, options: ApplyOptions, signal?: AbortSignal): Promise<void>;
  /** One pass of an apply, and the spec that it was for. */
  apply(
    request: ConnectionRequest,
    options: ApplyOptions,
    signal?: AbortSignal,
  ): Promise<{ readonly spec: ConnectionSpec; readonly applied: Applied }>;
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
}

export function createProvisioning(dependencies: ProvisionDependencies): Provisioning {
  const { state, aws, clock } = dependencies;

  /** What a request asks for, of parts that are to be made. */
  async function wanted(request: ConnectionRequest, signal?: AbortSignal): Promise<Requested> {
    const found = await requested(dependencies, request, signal);
    refuseOtherAccount(found.spec);
    return found;
  }

  const lookAt = createLookAt({ state, aws, clock });
  const parts = { state, clock, lookAt, underLease: createUnderLease({ state, clock }) };

  return {
    async plan(request, signal) {
      const { spec, connection, record } = await wanted(request, signal);
      const plan = diff(await lookAt(spec, signal));
      const makesRule = plan.changes.some(({ part, action }) => part === 'rule' && action === 'create');
      const notes = makesRule ? busNote(spec, await aws.ruleCount(spec, signal)) : [];
      return { plan: { ...plan, findings: [...plan.findings, ...notes] }, connection, isConnected: record !== undefined };
    },
    async check(request, options, signal) {
      const { spec, connection } = await wanted(request, signal);
      refuse(diff(await lookAt(spec, signal)), connection, { ...options, asked: request });
    },
    async apply(request, options, signal) {
      const { spec, record } = await wanted(request, signal);
      if (record === undefined)
        throw new RequestError(
          'bucket.not-connected',
          `${request.bucket} is not connected: connect it with \`tally bucket add ${request.bucket}\``,
        );
      return { spec, applied: await apply(parts, spec, { ...options, asked: request }, signal) };
    },
    pause: (bucket, signal) => pause(parts, bucket, signal),
    resume: (bucket, signal) => resume(parts, bucket, signal),
    async remove(bucket, { keepAws }, signal) {
      if (!keepAws) return removeParts(parts, bucket, signal);
      await forgetParts(parts, bucket, signal);
      return undefined;
    },
    removeEarlier: (bucket, signal) => removeEarlier(parts, bucket, signal),
    probe: (connection, isLost, signal) => sendProbe({ state, clock, aws }, connection, isLost, signal),
    diagnose: (record, signal, known) => diagnose({ ...dependencies, lookAt }, record, signal, known),
  };
}

/** Tally has no credentials for another account: its owner sends the events to a topic, and lets the bucket be read. */
function refuseOtherAccount({ bucket, bucketAccount, account, source }: ConnectionSpec): void {
  if (bucketAccount === account || source === 'topic') return;
  throw new RequestError(
    'connect.other-account',
    `${bucket} belongs to the account ${bucketAccount}, and the bucket queue to ${account}. Let its owner send the events to a topic there, and connect it with \`tally bucket add ${bucket} --bucket-account ${bucketAccount} --source topic --topic ARN\` (${docsPage('docs/guides/connect.md#another-region-or-account')})`,
  );
}
