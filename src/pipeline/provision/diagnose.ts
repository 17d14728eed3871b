/**
 * What is wrong with the connection of a bucket. It only reads, and what cannot be read is a finding too. A bucket that was
 * wired by hand has no record of it, so it is judged by what leads to the bucket queue.
 */
import type { WishRequest } from '../../domain/provisioning/planning/apply-command.ts';
import type { BucketRecord } from '../../domain/bucket.ts';
import { adviceAbout, FaultError, faultOf } from '../../domain/fault.ts';
import { queueChecks } from '../../domain/provisioning/checks/all.ts';
import {
  byHandFindings,
  degraded,
  clockSkew,
  type Finding,
  broken,
  NOT_ENRICHED,
  statusOf,
} from '../../domain/provisioning/checks/finding.ts';
import type { ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { canonicalEntry, parseNotification, entryText, lostEntries } from '../../domain/provisioning/notification.ts';
import type { Observed } from '../../domain/provisioning/observed.ts';
import { completeTopic, missingFamilies } from '../../domain/provisioning/overlap.ts';
import { withNotMade, planOf, withPlanFirst } from '../../domain/provisioning/planning/plan.ts';
import type { Wish } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AwsReads } from '../ports/provision.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import { readRecord, refs } from '../records/stored.ts';
import { type ReadBucketQueue, atQueue, wishOfConnection, type WishOf } from './wishes.ts';
import { ownedBucket, type Observe } from './observe.ts';
import type { WithPorts } from '../ports/ports.ts';

/** A pause is meant for the moment in which another notification is made. */
const PAUSE_MAX_MS = 86_400_000;
/** The watch looks 5 and 30 s after a write. What is changed later is a matter of others. */
const LOST_MS = 120_000;

interface DiagnoseDependencies extends WithPorts<'state' | 'clock'> {
  readonly aws: Pick<AwsReads, 'notificationOf'>;
  readonly readBucketQueue: ReadBucketQueue;
  readonly storage: Pick<ObjectStorage, 'versioningOf' | 'firstKey' | 'readVersion' | 'readTags'>;
  /** The bucket queues that the daemon receives from. */
  readonly queueUrls: readonly string[];
  readonly wishOf: WishOf;
  readonly observe: Observe;
}

/** Throws `connect.embedded` only. `known`: the record of its connection, if it was read just now. */
export type Diagnose = (record: BucketRecord, signal?: AbortSignal, known?: ConnectionRecord) => Promise<readonly Finding[]>;

export function createDiagnose({
  state,
  aws,
  storage,
  readBucketQueue,
  clock,
  queueUrls,
  wishOf,
  observe,
}: DiagnoseDependencies): Diagnose {
  return async function diagnose(record, signal, known) {
    const connection = await readable(record, (...of) => diagnoseConnection(...of, known), signal);
    // S3 would fail again, and be found twice
    if (!connection.isRead) return connection.findings;
    const ofClock = await readable(record, diagnoseClock, signal);
    return [...connection.findings, ...ofClock.findings, ...(await diagnoseEnrichment(record, signal))];
  };

  /** What the read finds; a read that fails is a finding. */
  async function readable(
    record: BucketRecord,
    read: (record: BucketRecord, signal: AbortSignal | undefined) => Promise<readonly Finding[]>,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly isRead: boolean; readonly findings: readonly Finding[] }> {
    try {
      return { isRead: true, findings: await read(record, signal) };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof RequestError && error.code === 'connect.embedded') throw error;
      return { isRead: false, findings: [unreadFinding(record.bucket, error)] };
    }
  }

  async function diagnoseConnection(
    record: BucketRecord,
    signal: AbortSignal | undefined,
    known: ConnectionRecord | undefined,
  ): Promise<readonly Finding[]> {
    const connection = known ?? (await readRecord(state, refs.connection(record.bucket), signal));
    if (connection === undefined) return diagnoseHandMade(record, signal);
    if (connection.state === 'paused') return [pausedFinding(connection, clock.nowMs())];
    const wish = await asReceived(connection, signal);
    const observed = await observe(wish, signal);
    const plan = planOf(wish, observed);
    const findings = [
      ...queueChangedFindings(connection, wish),
      ...lostFindings(connection, observed, clock.nowMs()),
      ...(wish.byHand === true ? ofHand(wish, plan.findings, record.provenAtMs !== undefined) : plan.findings),
      ...leftOverFindings(connection),
    ];
    return withPlanFirst(findings, plan);
  }

  /** Measured now: what the record holds may be from before a clock was set. An answer that waited long says less, so both ends are compared. */
  async function diagnoseClock({ bucket, region, account }: BucketRecord, signal?: AbortSignal): Promise<readonly Finding[]> {
    const sentAtMs = clock.nowMs();
    const versioning = await storage.versioningOf({ bucket, region, account }, signal);
    if (versioning.status === 'unknown') return [];
    return clockSkew(bucket, { s3AtMs: versioning.observedAtMs, sentAtMs, answeredAtMs: clock.nowMs() });
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
      const queue = await readBucketQueue(queueUrl, connection, signal);
      if (queue.arn === wish.queueArn) return atQueue(wish, queue);
      queues.push(queue);
    }
    const [first] = queues;
    return first === undefined ? wish : atQueue(wish, first);
  }

  /** Who wired it chose one of the bucket queues. Where none is known to get its events, the findings are those of the first. */
  async function diagnoseHandMade(record: BucketRecord, signal?: AbortSignal): Promise<readonly Finding[]> {
    const { wish } = await wishOf(handMade(record), signal);
    const isProven = record.provenAtMs !== undefined;
    const found = await diagnoseWired(wish, isProven, signal);
    if (isDelivered(found)) return found;
    for (const queueUrl of queueUrls.slice(1)) {
      const elsewhere = await diagnoseWired(atQueue(wish, await readBucketQueue(queueUrl, undefined, signal)), isProven, signal);
      if (isDelivered(elsewhere)) return elsewhere;
    }
    return found;
  }

  async function diagnoseWired(asked: Wish, isProven: boolean, signal: AbortSignal | undefined): Promise<readonly Finding[]> {
    const { wish, isStraight } = await asWired(asked, signal);
    const observed = await observe(wish, signal);
    const plan = planOf(wish, observed);
    const { findings, wiring } = plan;
    const ofQueues = queueChecks.flatMap((check) => check({ wish, wiring, observed }) ?? []);
    if (isStraight) return ofQueues;
    if (wish.source === 'notification') {
      const command = `tally bucket apply ${wish.bucket}`;
      return withPlanFirst(withNotMade(plan, { observed, command, severity: 'broken' }), plan);
    }
    if (observed.rule !== 'absent') return withPlanFirst(findings, plan, asked);
    const off = findings.filter(({ code }) => code === 'connect.eventbridge-off');
    return withPlanFirst([...byHandFindings(wish, isProven), ...off, ...ofQueues], plan);
  }

  /** The topic of a notification need not be known: what the bucket sends everything to is taken for it. */
  async function asWired(wish: Wish, signal?: AbortSignal): Promise<{ readonly wish: Wish; readonly isStraight: boolean }> {
    if (wish.source !== 'notification') return { wish, isStraight: false };
    const read = parseNotification(await aws.notificationOf(ownedBucket(wish), signal));
    if (!read.ok) return { wish, isStraight: false };
    if (missingFamilies(read.configuration, wish.queueArn, 'queue').length === 0) return { wish, isStraight: true };
    const topicArn = completeTopic(read.configuration);
    return { wish: topicArn === undefined ? wish : { ...wish, source: 'topic', topicArn }, isStraight: false };
  }
}

function isDelivered(findings: readonly Finding[]): boolean {
  const status = statusOf(findings);
  return status === 'ok' || status === 'degraded';
}

/** A bucket that was wired by hand has no record of it: its topic, if it is known, is checked like one of another team. */
function handMade({ bucket, source, topicArn, enrich }: BucketRecord): WishRequest {
  if (source === 'notification' && topicArn !== undefined) return { bucket, source: 'topic', topic_arn: topicArn, enrich };
  const isOfSource = topicArn !== undefined && (source === 'topic' || source === 'routed');
  return { bucket, source, enrich, ...(isOfSource && { topic_arn: topicArn }) };
}

/** S3 cannot exclude that others write at the same moment as Tally: what they had is looked for after the write. */
function lostFindings(connection: ConnectionRecord, { notification }: Observed, nowMs: number): readonly Finding[] {
  const { bucket, lastWrite } = connection;
  if (lastWrite === undefined || !notification.ok || nowMs - lastWrite.atMs > LOST_MS) return [];
  const { configuration } = notification;
  const lost = lostEntries(lastWrite.xml, configuration, connection);
  if (lost.length === 0) return [];
  return [
    degraded(
      'connect.changed-meanwhile',
      `${bucket} has lost notifications of others since Tally wrote its configuration: ${lost.map(entryText).join(', ')}`,
      `if they were not removed on purpose, two writes have crossed, and their owners must add them again, with their events and filters: ${lost.map(canonicalEntry).join('; ')}. A write replaces the whole configuration, so it must contain what is there now`,
      `aws s3api get-bucket-notification-configuration --bucket ${bucket}`,
    ),
  ];
}

/** No process receives what the old queue still holds. */
function queueChangedFindings({ bucket, queueArn }: ConnectionRecord, wish: Wish): readonly Finding[] {
  if (queueArn === wish.queueArn) return [];
  const what = `the events of ${bucket} go to ${queueArn}, and the daemon receives from ${wish.queueArn}`;
  const why = 'TALLY_QUEUE_URL was changed after the bucket was connected, so its events arrive in a queue that is not read';
  return [broken('connect.queue-changed', what, why, `tally bucket apply ${bucket}`)];
}

function leftOverFindings(connection: ConnectionRecord | undefined): readonly Finding[] {
  if (connection === undefined) return [];
  const { bucket, earlier = [] } = connection;
  if (earlier.length === 0) return [];
  const names = earlier.map(({ source, topicArn, queueArn, installation }) => {
    const by = topicArn === undefined ? source : `${source} (${topicArn})`;
    const to = queueArn === connection.queueArn ? '' : ` to ${queueArn}`;
    return `${by}${to}${installation === connection.installation ? '' : ` with the name ${installation}`}`;
  });
  return [
    degraded(
      'connect.left-over',
      `parts of ${bucket} may be left in AWS from before its source, its queue or the name of the installation was changed: ${names.join(', ')}`,
      'they deliver until the gap of the change is closed. Within an hour of that they go by themselves, and with an apply at once',
      `tally bucket apply ${bucket}`,
    ),
  ];
}

/** Of what a person has wired, an event that arrived says more than a trail that was read. */
function ofHand(wish: Wish, findings: readonly Finding[], isProven: boolean): readonly Finding[] {
  return isProven ? findings.filter(({ code }) => !code.includes('.trail-')) : [...findings, ...byHandFindings(wish, isProven)];
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

/** What is gone stays gone, so another look is a remedy only for what may pass. */
function remedyOf(bucket: string, error: unknown): string {
  if (error instanceof RequestError && error.code === 'connect.denied') return 'tally iam-policy --for daemon';
  // the plan shows what the new queue lacks
  if (error instanceof RequestError && error.code === 'connect.queue-missing')
    return `${error.extra['create']} && tally bucket plan ${bucket}`;
  if (error instanceof FaultError && error.code === 'bucket.missing') return `tally bucket remove ${bucket}`;
  return `tally doctor ${bucket}`;
}
