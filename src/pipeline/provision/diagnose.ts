/** What is wrong with the connection of a bucket. It only reads, and what cannot be read is a finding too. */
import type { BucketRecord } from '../../domain/bucket.ts';
import { adviceAbout, FaultError, faultOf } from '../../domain/fault.ts';
import { clockSkew } from '../../domain/provisioning/checks/clock.ts';
import { degraded, NOT_ENRICHED, type Finding } from '../../domain/provisioning/checks/finding.ts';
import { notMade, partFindings } from '../../domain/provisioning/planning/part-findings.ts';
import type { ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { passesBoth } from '../../domain/provisioning/overlap.ts';
import { ownTopicOf, probeFindings } from '../../domain/provisioning/planning/probe.ts';
import { queueOf } from '../../domain/provisioning/facts.ts';
import { planOf } from '../../domain/provisioning/planning/plan.ts';
import type { Wish } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { WithPorts } from '../ports/ports.ts';
import type { AwsReads } from '../ports/provision.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import { readRecord } from '../records/stored.ts';
import type { Observe } from './observe.ts';
import { atQueue, readBucketQueue, wishOfConnection, type WishOf } from './wishes.ts';
import { refs } from './refs.ts';

/** The findings of a trail that is only read. */
const OF_TRAIL = /^connect\.trail-/;
/** A pause is meant for the moment in which another notification is made. */
const PAUSE_MAX_MS = 86_400_000;

interface DiagnoseDependencies extends WithPorts<'state' | 'clock'> {
  readonly aws: Pick<AwsReads, 'queueAt' | 'queueTags'>;
  readonly storage: Pick<ObjectStorage, 'versioningOf' | 'firstKey' | 'readVersion' | 'readTags'>;
  /** The bucket queues that the daemon receives from. */
  readonly queueUrls: readonly string[];
  readonly wishOf: WishOf;
  readonly observe: Observe;
}

export interface Diagnosed {
  readonly findings: readonly Finding[];
  /** The notification configuration sends every created and removed event to the bucket's topic or queue. */
  readonly passesBoth: boolean;
}

/** Throws `connect.embedded` only. `known`: the record of its connection, if it was read just now. */
export type Diagnose = (record: BucketRecord, signal?: AbortSignal, known?: ConnectionRecord) => Promise<Diagnosed>;

export function createDiagnose({ state, storage, aws, clock, queueUrls, wishOf, observe }: DiagnoseDependencies): Diagnose {
  return async function diagnose(record, signal, known) {
    const { isRead, findings, passesBoth: isWhole } = await readable(record, (...of) => diagnoseConnection(...of, known), signal);
    // S3 would fail again, and be found twice
    if (!isRead) return { findings, passesBoth: false };
    const ofClock = await readable(record, diagnoseClock, signal);
    return { findings: [...findings, ...ofClock.findings, ...(await diagnoseEnrichment(record, signal))], passesBoth: isWhole };
  };

  /** What the read finds; a read that fails is a finding. */
  async function readable(
    record: BucketRecord,
    read: (record: BucketRecord, signal: AbortSignal | undefined) => Promise<Diagnosed>,
    signal: AbortSignal | undefined,
  ): Promise<Diagnosed & { readonly isRead: boolean }> {
    try {
      return { isRead: true, ...(await read(record, signal)) };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof RequestError && error.code === 'connect.embedded') throw error;
      return { isRead: false, ...only([unreadFinding(record.bucket, error)]) };
    }
  }

  async function diagnoseConnection(
    record: BucketRecord,
    signal: AbortSignal | undefined,
    known: ConnectionRecord | undefined,
  ): Promise<Diagnosed> {
    const { bucket, provenAtMs } = record;
    const connection = known ?? (await readRecord(state, refs.connection(bucket), signal));
    if (connection?.state === 'paused') return only([pausedFinding(connection, clock.nowMs())]);
    // how a bucket is wired of which there is no record is not known, but that its events arrive is
    const asked = { bucket, ...(provenAtMs !== undefined && { wired_by_hand: true }) };
    const wish = connection === undefined ? (await wishOf(asked, signal)).wish : await asReceived(connection, signal);
    const observed = await observe(wish, signal);
    const plan = planOf(wish, observed);
    if (connection === undefined) return only([...plan.findings, ...(provenAtMs === undefined ? notMade(plan) : [])]);
    // of what a person has wired, an event that arrived says more than a trail that was read
    const isProven = wish.byHand === true && provenAtMs !== undefined;
    const { notification } = observed;
    return {
      findings: [
        ...partFindings(plan),
        ...plan.findings.filter(({ code }) => !isProven || !OF_TRAIL.test(code)),
        ...probeFindings(await probeOf(wish, signal), queueOf(observed, wish.queueArn), clock.nowMs()),
      ],
      passesBoth: notification.ok && passesBoth(wish, notification.configuration),
    };
  }

  async function probeOf(wish: Wish, signal: AbortSignal | undefined) {
    const topicArn = ownTopicOf(wish);
    return topicArn === undefined ? undefined : readRecord(state, refs.probe(topicArn), signal);
  }

  /** Measured now: what the record holds may be from before a clock was set. An answer that waited long says less, so both ends are compared. */
  async function diagnoseClock({ bucket, region, account }: BucketRecord, signal?: AbortSignal): Promise<Diagnosed> {
    const sentAtMs = clock.nowMs();
    const versioning = await storage.versioningOf({ bucket, region, account }, signal);
    if (versioning.status === 'unknown') return only([]);
    return only(clockSkew(bucket, { s3AtMs: versioning.observedAtMs, sentAtMs, answeredAtMs: clock.nowMs() }));
  }

  /** Asks for one object what enrichment reads. What does not answer, or cannot be listed, is found elsewhere. */
  async function diagnoseEnrichment({ bucket, region, account, enrich }: BucketRecord, signal?: AbortSignal): Promise<readonly Finding[]> {
    if (enrich === 'none') return [];
    const at = { bucket, region, account };
    try {
      const key = await storage.firstKey(at, signal).catch(() => undefined);
      signal?.throwIfAborted();
      if (key === undefined) return [];
      await storage.readVersion(at, { key }, signal);
      if (enrich === 'tags') await storage.readTags(at, { key }, signal);
      return [];
    } catch (error) {
      signal?.throwIfAborted();
      const { code, reason } = faultOf(error);
      if (code !== 'object.denied') return [];
      const why = 'searches by tags and metadata find less than there is. Once S3 answers, a re-index fills it in';
      return [degraded(NOT_ENRICHED, `S3 refuses what enriches ${bucket}: ${reason}`, why, adviceAbout(code, bucket))];
    }
  }

  /** The wish with the queue that the daemon receives from now: the settings may name another one than when it was applied. */
  async function asReceived(connection: ConnectionRecord, signal?: AbortSignal): Promise<Wish> {
    const wish = wishOfConnection(connection);
    const queues = [];
    for (const queueUrl of queueUrls) {
      const queue = await readBucketQueue(aws, queueUrl, signal);
      if (queue.arn === wish.queueArn) return atQueue(wish, queue);
      queues.push(queue);
    }
    const [first] = queues;
    return first === undefined ? wish : atQueue(wish, first);
  }
}

function only(findings: readonly Finding[]): Diagnosed {
  return { findings, passesBoth: false };
}

function pausedFinding({ bucket, pausedAtMs }: ConnectionRecord, nowMs: number): Finding {
  const since = pausedAtMs === undefined ? '' : ` since ${new Date(pausedAtMs).toISOString()}`;
  return {
    code: 'connect.paused',
    severity: pausedAtMs !== undefined && nowMs - pausedAtMs > PAUSE_MAX_MS ? 'broken' : 'degraded',
    what: `the notification of ${bucket} is paused${since}`,
    why: 'no events arrive until it is resumed',
    fix: `tally bucket resume ${bucket}`,
    blocks: false,
  };
}

/** A read that failed says nothing about the connection. */
function unreadFinding(bucket: string, error: unknown): Finding {
  const isKnown = error instanceof RequestError || error instanceof FaultError;
  const isQueueMissing = isKnown && error.code === 'connect.queue-missing';
  const reason = error instanceof RequestError ? error.message : faultOf(error).reason;
  return {
    code: isKnown ? error.code : 'internal.unexpected',
    severity: isQueueMissing ? 'broken' : 'unknown',
    what: isQueueMissing ? reason : `the connection of ${bucket} could not be read: ${reason}`,
    why: isQueueMissing ? 'what S3 reports is lost until it is there again' : 'whether events arrive is not known',
    fix: remedyOf(bucket, error),
    blocks: true,
  };
}

/** Suggest another look only for what may pass; deleted things don't come back. */
function remedyOf(bucket: string, error: unknown): string {
  if (error instanceof RequestError && error.code === 'connect.denied') return 'tally iam-policy --for daemon';
  if (error instanceof RequestError && error.code === 'connect.queue-missing')
    return `${error.extra['create']} && tally bucket add ${bucket}`;
  if (error instanceof FaultError && error.code === 'bucket.missing') return `tally bucket remove ${bucket}`;
  return `tally doctor ${bucket}`;
}
