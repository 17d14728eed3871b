/** What the registry and the watch do about connections (`Provisioning`), and the operations that answer it in the API's form. */
import { defined } from '../base/defined.ts';
import type { AddBucketRequest } from '../registry/contract/buckets.ts';
import {
  connectionView,
  diagnosisView,
  planView,
  type ConnectionView,
  type Diagnosis,
  type PlanView,
} from '../registry/contract/connections.ts';
import { adviceAbout, FaultError, faultOf, isFaultCode, type FaultCode } from '../base/fault.ts';
import type { Trouble } from '../records/process-record.ts';
import { broken, unprovenFindings, type Finding } from './finding.rules.ts';
import type { ConnectionRequest } from './plan.rules.ts';
import { troublesOf, type Processes } from '../observing/processes.ts';
import type { BucketRecord } from '../records/bucket.ts';
import { RequestError } from '../base/request-error.ts';
import { requireBucket } from '../observing/known-buckets.ts';
import { docsPage } from '../base/doc-pages.ts';
import type { ConnectionRecord, ConnectionSpec } from './connection.rules.ts';
import { createTakeLease } from '../store/lease.ts';
import { diagnose } from './diagnose.ts';
import { apply, pause, refuse, removeEarlier, removeParts, resume, type Applied, type ApplyOptions } from './apply.ts';
import { sendProbe } from './probe.ts';
import { requested, type ProvisionDependencies } from './requested.ts';
import { busNote } from './sources/eventbridge.ts';
import { createLookAt, diff } from './sources/sources.ts';
import type { CheckConnection } from './watch.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import { readRecord } from '../store/stored.ts';
import type { WithPorts } from '../store/store.ts';
import { refs } from './refs.ts';

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
      const plan = diff(await lookAt(spec, signal));
      const makesRule = plan.changes.some(({ part, action }) => part === 'rule' && action === 'create');
      const notes = makesRule ? busNote(spec, await aws.ruleCount(spec, signal)) : [];
      return { plan: { ...plan, findings: [...plan.findings, ...notes] }, connection, isConnected: record !== undefined };
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
    remove: (bucket: string, { keepAws }: { readonly keepAws: boolean }, signal?: AbortSignal) =>
      removeParts(parts, bucket, keepAws, signal),
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

interface ConnectionDependencies extends WithPorts<'state' | 'clock'> {
  readonly provisioning: Provisioning;
  readonly checkConnection: CheckConnection;
  readonly storage: Pick<ObjectStorage, 'firstKey'>;
  readonly processes: Pick<Processes, 'troubles'>;
}

/** Flags of a query are texts. */
type PlanFields = Omit<ConnectionRequest, 'bucket' | 'wired_by_hand'> & { readonly wired_by_hand?: 'true' | 'false' };

export function createConnections({ state, provisioning, checkConnection, storage, processes, clock }: ConnectionDependencies) {
  /** What one pass has reached. What a check found before it was over is checked again. */
  async function checked(bucket: string, reached: ConnectionView, signal: AbortSignal): Promise<ConnectionView> {
    const record = reached.state === 'applying' ? undefined : await readRecord(state, refs.bucket(bucket), signal);
    if (record !== undefined) await checkConnection(record, signal);
    return reached;
  }

  /** Events arrive also where what would repair the index is denied. The watch does not ask: a LIST costs twelve times another read. */
  async function listingFindings({ bucket, region, account }: BucketRecord, signal: AbortSignal): Promise<readonly Finding[]> {
    try {
      await storage.firstKey({ bucket, region, account }, signal);
      return [];
    } catch (error) {
      signal.throwIfAborted();
      const { code, reason } = faultOf(error);
      const what = `${bucket} cannot be listed: ${reason}`;
      const found = broken(code, what, 'a re-index needs the listing to repair the index', adviceAbout(code, bucket));
      return [isRefusal(code) ? found : { ...found, severity: 'unknown' }];
    }
  }

  return {
    /** Whether the request's bucket has parts in AWS: the embedded storage notifies by itself. Throws what would keep them from being made. */
    async check(body: AddBucketRequest, signal: AbortSignal): Promise<boolean> {
      try {
        await provisioning.check(requestOf(body), agreementOf(body), signal);
        return true;
      } catch (error) {
        if ((body.source ?? 'notification') === 'notification' && error instanceof RequestError && error.code === 'connect.embedded')
          return false;
        throw error;
      }
    },
    /** One pass of what a connected bucket has in AWS. `isNew`: it was connected by this request. */
    async apply(body: AddBucketRequest, isNew: boolean, signal: AbortSignal): Promise<ConnectionView> {
      const { applied } = await provisioning.apply(requestOf(body), agreementOf(body), signal).catch((error: unknown) => {
        throw notApplied(body.bucket, isNew, error);
      });
      return checked(body.bucket, appliedView(body.bucket, applied), signal);
    },
    async plan(bucket: string, { wired_by_hand: byHand, ...query }: PlanFields, signal: AbortSignal): Promise<PlanView> {
      const { plan, connection, isConnected } = await provisioning.plan(
        requestOf({ bucket, ...query, ...(byHand !== undefined && { wired_by_hand: byHand === 'true' }) }),
        signal,
      );
      return planView(plan, { connected: isConnected, state: connection?.state ?? 'none' });
    },
    pause: async (bucket: string, signal: AbortSignal): Promise<ConnectionView> =>
      checked(bucket, connectionView(await provisioning.pause(bucket, signal)), signal),
    resume: async (bucket: string, signal: AbortSignal): Promise<ConnectionView> =>
      checked(bucket, appliedView(bucket, await provisioning.resume(bucket, signal)), signal),
    async diagnose(bucket: string, signal: AbortSignal): Promise<Diagnosis> {
      const record = await requireBucket(state, bucket, signal);
      const found = [
        ...waitingFindings(record, troublesOf(await processes.troubles(), record, clock.nowMs()).waitsFor),
        ...(await checkConnection(record, signal)),
      ];
      const unlisted = await listingFindings(record, signal);
      const wrong = [...found, ...unlisted.filter(({ code }) => !found.some((known) => known.code === code))];
      // the check may have proven it
      const isByHand = (await readRecord(state, refs.connection(bucket), signal))?.byHand === true;
      const unproven = unprovenFindings(await requireBucket(state, bucket, signal), isByHand, clock.nowMs());
      return diagnosisView(bucket, [...wrong, ...unproven]);
    },
    /**
     * Makes the notification of the bucket again before its re-index, in one pass of an apply: a second one would last longer than
     * the request may. Throws `job.repair-refused` for every other source, with nothing changed, `connect.busy` if the pass was too
     * short, and what an apply throws.
     */
    async repair(bucket: string, signal: AbortSignal): Promise<void> {
      const { source } = await requireBucket(state, bucket, signal);
      if (source !== 'notification') {
        const detail = `repair: ${bucket} gets its events through ${source}, and a notification would clash with that. Start the re-index without repair.`;
        throw new RequestError('job.repair-refused', detail);
      }
      const connection = await readRecord(state, refs.connection(bucket), signal);
      if (connection?.byHand === true) {
        const detail = `repair: a person wired ${bucket}, and a notification would clash with that. Start the re-index without repair.`;
        throw new RequestError('job.repair-refused', detail);
      }
      const { applied } = await provisioning.apply({ bucket }, { isAgreed: connection !== undefined }, signal);
      const { state: reached } = await checked(bucket, appliedView(bucket, applied), signal);
      if (reached === 'applied') return;
      throw new RequestError(
        'connect.busy',
        `AWS does not show the notification of ${bucket} yet, so no re-index was started: repeat the request`,
      );
    },
  };
}

/** What does not pass by itself. */
function isRefusal(code: FaultCode): boolean {
  return code === 'object.denied' || code === 'bucket.denied' || code === 'bucket.missing';
}

/** What keeps events that have arrived from the index: the watch of the connection does not see it. */
function waitingFindings({ bucket }: BucketRecord, waitsFor: Trouble | undefined): readonly Finding[] {
  // that a queue does not exist is found with its remedy by the look at the connection
  if (waitsFor === undefined || waitsFor.code === 'queue.missing') return [];
  const { code, reason } = waitsFor;
  const fix = isFaultCode(code) ? adviceAbout(code, bucket) : `tally doctor ${bucket}`;
  return [broken(code, `the events of ${bucket} are waiting: ${reason}`, 'their changes reach the index only after that', fix)];
}

function requestOf({ bucket, source, topic_arn, enrich, bucket_account, wired_by_hand }: ConnectionRequest): ConnectionRequest {
  return { bucket, ...defined({ source, topic_arn, enrich, bucket_account, wired_by_hand }) };
}

const agreementOf = ({ plan, switch_on_eventbridge }: AddBucketRequest) => defined({ token: plan, isSwitchAgreed: switch_on_eventbridge });

/** The error with what holds all the same, and what to do: the bucket is connected, and its parts in AWS are not all made. */
function notApplied(bucket: string, isNew: boolean, error: unknown): unknown {
  const text = isNew
    ? `. ${bucket} is still connected, but not all of its parts in AWS exist, so its events may not arrive: repeat the request once the cause is gone, or undo it with \`tally bucket remove ${bucket}\``
    : `. ${bucket} stays connected, and keeps what it had in AWS until the whole change is made`;
  if (error instanceof RequestError) return new RequestError(error.code, `${error.message}${text}`, error.extra);
  return error instanceof FaultError ? new FaultError(error.code, `${error.reason}${text}`) : error;
}

function appliedView(bucket: string, applied: Applied): ConnectionView {
  if (applied.state === 'applied') {
    return { ...connectionView(applied.connection), changed: applied.changed };
  }
  return { bucket, state: 'applying', waiting_for: applied.waitingFor, retry_after_ms: applied.retryAfterMs };
}
