/** What the registry and the watch do about connections. */
import { docsPage } from '../base/doc-pages.ts';
import type { BucketRecord } from '../records/bucket.ts';
import type { ConnectionRecord, ConnectionSpec } from './connection.rules.ts';
import type { ConnectionRequest, Kept } from './plan.rules.ts';
import { RequestError } from '../base/request-error.ts';
import { createTakeLease } from '../store/lease.ts';
import { diagnose } from './diagnose.ts';
import { apply, forgetParts, pause, refuse, removeEarlier, removeParts, resume, type ApplyOptions } from './apply.ts';
import { sendProbe } from './probe.ts';
import { requested, type ProvisionDependencies } from './requested.ts';
import { createLookAt, diff } from './sources/sources.ts';

export type Provisioning = ReturnType<typeof createProvisioning>;

export function createProvisioning(dependencies: ProvisionDependencies) {
  const { state, aws, clock } = dependencies;

  /** What a request asks for, of parts that are to be made. */
  async function wanted(request: ConnectionRequest, signal?: AbortSignal) {
    const found = await requested(dependencies, request, signal);
    refuseOtherAccount(found.spec);
    return found;
  }

  const lookAt = createLookAt({ aws, clock });
  const parts = { state, clock, lookAt, takeLease: createTakeLease({ state, clock }) };

  return {
    /** Reads AWS and says what would change, and whether there is a record of the bucket. */
    async plan(request: ConnectionRequest, signal?: AbortSignal) {
      const { spec, connection, record } = await wanted(request, signal);
      return { plan: diff(await lookAt(spec, signal)), connection, isConnected: record !== undefined };
    },
    /** Throws what would keep an apply from being made. Nothing is written or stored. */
    async check(request: ConnectionRequest, options: ApplyOptions, signal?: AbortSignal): Promise<void> {
      const { spec, connection } = await wanted(request, signal);
      refuse(diff(await lookAt(spec, signal)), connection, options);
    },
    /** One pass of an apply, and the spec that it was for. */
    async apply(request: ConnectionRequest, options: ApplyOptions, signal?: AbortSignal) {
      const { spec, record } = await wanted(request, signal);
      if (record === undefined)
        throw new RequestError(
          'bucket.not-connected',
          `${request.bucket} is not connected: connect it with \`tally bucket add ${request.bucket}\``,
        );
      const applied = await apply(parts, spec, options, signal);
      // the watch may not be permitted to
      if (applied.state === 'applied' && !applied.changed) await removeEarlier(parts, spec.bucket, signal);
      return { spec, applied };
    },
    pause: (bucket: string, signal: AbortSignal) => pause(parts, bucket, signal),
    resume: (bucket: string, signal: AbortSignal) => resume(parts, bucket, signal),
    /** Takes away what Tally made, or with `keepAws` only forgets it. Undefined: nothing was made. */
    async remove(bucket: string, { keepAws }: { readonly keepAws: boolean }, signal?: AbortSignal): Promise<readonly Kept[] | undefined> {
      if (!keepAws) return removeParts(parts, bucket, signal);
      await forgetParts(parts, bucket, signal);
      return undefined;
    },
    removeEarlier: (bucket: string, signal?: AbortSignal) => removeEarlier(parts, bucket, signal),
    probe: (connection: ConnectionRecord, isLost: boolean, signal?: AbortSignal) =>
      sendProbe({ state, clock, aws }, connection, isLost, signal),
    diagnose: (record: BucketRecord, signal?: AbortSignal) => diagnose({ ...dependencies, lookAt }, record, signal),
  };
}

/** Tally has no credentials for another account: its owner sends the events to a topic, and lets the bucket be read. */
function refuseOtherAccount({ bucket, bucketAccount, account, source }: ConnectionSpec): void {
  if (bucketAccount === account || source === 'topic' || source === 'webhook') return;
  throw new RequestError(
    'connect.other-account',
    `${bucket} belongs to the account ${bucketAccount}, and the bucket queue to ${account}. Have its owner send the events to a topic there, and connect it with \`tally bucket add ${bucket} --bucket-account ${bucketAccount} --source topic --topic ARN\` (${docsPage('docs/guides/connect.md#another-region-or-account')})`,
  );
}
