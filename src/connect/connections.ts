/** Everything that the registry and the watch do with connections: plan, apply, pause, resume, repair, remove, diagnose. */
import type { ConnectionView } from '../registry/contract/connections.ts';
import type { BucketRecord, ConnectionSpec } from '../records/bucket.ts';
import { RequestError } from '../base/request-error.ts';
import { requireBucket } from '../observing/buckets.ts';
import { createTakeLease } from '../store/lease.ts';
import { diagnose } from './diagnose.ts';
import { apply, pause, refuse, removeEarlier, removeParts, resume, type ApplyOptions } from './apply.ts';
import type { ConnectionRequest } from './plan.rules.ts';
import { sendProbe } from './probe.ts';
import { refuseOtherAccount, requested, type ConnectionParts } from './requested.ts';
import { busNote } from './sources/eventbridge.ts';
import { createLookAt, diff } from './sources/sources.ts';

export type Connections = ReturnType<typeof createConnections>;

export function createConnections(parts: ConnectionParts) {
  const { state, aws, clock, isEmbedded } = parts;
  const lookAt = createLookAt({ aws, clock });
  const changing = { state, clock, lookAt, takeLease: createTakeLease({ state, clock }) };

  /** The spec that a request asks for, whose parts are to be made. */
  async function wanted(request: ConnectionRequest, signal?: AbortSignal) {
    const found = await requested(parts, request, signal);
    refuseOtherAccount(found.spec);
    return found;
  }

  /** One pass of an apply of a connected bucket. */
  async function applyTo(request: ConnectionRequest, options: ApplyOptions, signal?: AbortSignal): Promise<ConnectionView> {
    const { spec } = await wanted(request, signal);
    const applied = await apply(changing, spec, options, signal);
    // the watch may lack the permission
    if (applied.changed === false) await removeEarlier(changing, spec.bucket, signal);
    return applied;
  }

  return {
    /** Reads AWS and says what would change, and what is stored of the bucket. */
    async plan(request: ConnectionRequest, signal?: AbortSignal) {
      const { spec, record } = await wanted(request, signal);
      const plan = diff(await lookAt(spec, signal));
      const makesRule = plan.changes.some(({ part, action }) => part === 'rule' && action === 'create');
      const notes = makesRule ? busNote(spec, await aws.ruleCount(spec, signal)) : [];
      return { plan: { ...plan, findings: [...plan.findings, ...notes] }, record };
    },
    /** Whether the bucket needs parts in AWS: the embedded storage sends its events itself. Throws what would prevent making them. Writes and stores nothing. */
    async check(request: ConnectionRequest, options: ApplyOptions, signal?: AbortSignal): Promise<boolean> {
      if (isEmbedded && (request.source ?? 'notification') === 'notification') return false;
      const { spec, record } = await wanted(request, signal);
      refuse(diff(await lookAt(spec, signal)), record?.connection, options);
      return true;
    },
    apply: applyTo,
    pause: (bucket: string, signal: AbortSignal) => pause(changing, bucket, signal),
    resume: (bucket: string, signal: AbortSignal) => resume(changing, bucket, signal),
    /**
     * Restores the bucket's notification before a re-index, in one pass: a second one would exceed the request's time.
     * Throws `job.repair-refused` for every other connection, with nothing changed, `connect.busy` if the pass was too short, and what
     * an apply throws.
     */
    async repair(bucket: string, signal: AbortSignal): Promise<void> {
      const { source, connection } = await requireBucket(state, bucket, signal);
      if (source !== 'notification' || connection?.byHand === true) {
        const how = connection?.byHand === true ? `a person wired ${bucket}` : `${bucket} gets its events through ${source}`;
        const detail = `repair: ${how}, and a notification would clash with that. Start the re-index without repair.`;
        throw new RequestError('job.repair-refused', detail);
      }
      const { state: reached } = await applyTo({ bucket }, { isAgreed: connection !== undefined }, signal);
      if (reached === 'applied') return;
      throw new RequestError(
        'connect.busy',
        `AWS does not show ${bucket}'s notification yet, so Tally started no re-index: repeat the request`,
      );
    },
    /** Removes what Tally created, or leaves it with `keepAws`. The caller removes the bucket's record next. */
    remove: (bucket: string, { keepAws }: { readonly keepAws: boolean }, signal?: AbortSignal) =>
      removeParts(changing, bucket, keepAws, signal),
    removeEarlier: (bucket: string, signal?: AbortSignal) => removeEarlier(changing, bucket, signal),
    probe: (spec: ConnectionSpec, isLost: boolean, signal?: AbortSignal) => sendProbe({ state, clock, aws }, spec, isLost, signal),
    diagnose: (record: BucketRecord, signal?: AbortSignal, refusedKey?: string) =>
      diagnose({ ...parts, lookAt }, record, signal, refusedKey),
  };
}
