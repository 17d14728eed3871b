/**
 * Applies a plan, resumes and pauses a notification, and takes away what Tally made. One call is one pass of the loop, which a caller
 * repeats until it is done. The record of a connection is stored before its parts are made, and goes after them.
 */
import type { BucketRecord, BucketSource, ConnectionCheck } from '../records/bucket.ts';
import { dialects, isFormOf } from '../events/record.ts';
import { inSentence } from '../base/commands.ts';
import { defined, omit } from '../base/defined.ts';
import { markId } from '../records/dirty.ts';
import { canonicalJson } from './canonical.rules.ts';
import {
  connectionSchema,
  earlierAfter,
  earlierSpecs,
  isTrail,
  madeSchema,
  specOf,
  subscriptionName,
  type ConnectionRecord,
  type ConnectionSpec,
} from './connection.rules.ts';
import { removingFinding } from './finding.rules.ts';
import { changesText, touchedText, type Change, type Kept, type Plan } from './plan.rules.ts';
import { RequestError } from '../base/request-error.ts';
import { appliedWithinMs, forgetProof, openChangeGap, proveGap } from '../observing/gaps.ts';
import type { TakeLease } from '../store/lease.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import { listAllEntries, listAllRecords, parseEntry, readRecord, removeRecord, updateRecord } from '../store/stored.ts';
import { refs } from './refs.ts';
import { busy, RETRY_MS, underLease, type Run, type Seen, type Waiting } from './loop.ts';
import { queuesOf, type Remains } from './sources/look.ts';
import { notificationRemoval } from './sources/notification.ts';
import { desired, diff, removal, type LookAt } from './sources/sources.ts';

/** What changes of connections need. */
export interface ChangeParts extends WithPorts<'state' | 'clock'> {
  readonly lookAt: LookAt;
  readonly takeLease: TakeLease;
}

export interface ApplyOptions {
  /** The token of a plan that a person has agreed to. */
  readonly token?: string;
  /** A person agrees that all of the bucket's events also go to EventBridge, and to nothing else. */
  readonly isSwitchAgreed?: boolean;
  /** Whatever it touches was agreed to before: it is restored. */
  readonly isAgreed?: boolean;
  /** The notification is to come back. */
  readonly isResuming?: boolean;
}

export type Applied =
  /** `changed`: something was made since it was applied last. */
  | { readonly state: 'applied'; readonly connection: ConnectionRecord; readonly changed: boolean }
  | { readonly state: 'applying'; readonly waitingFor: string; readonly retryAfterMs: number };

/** What one look of an apply has found. */
interface Looked extends Seen {
  readonly plan: Plan;
  readonly connection: ConnectionRecord | undefined;
}

/**
 * Makes in AWS what the bucket must have. Throws `connect.plan-needed`, `connect.plan-outdated`, `connect.paused`, `connect.removing`,
 * the code of what blocks the plan, `connect.changed-meanwhile`, and what AWS refuses.
 */
export async function apply(parts: ChangeParts, spec: ConnectionSpec, options: ApplyOptions, signal?: AbortSignal): Promise<Applied> {
  const { bucket } = spec;
  const { state, lookAt } = parts;
  const look = async (): Promise<Looked> => {
    const seen = await lookAt(spec, signal);
    const plan = diff(seen);
    const connection = await readRecord(state, refs.connection(bucket), signal);
    return { observed: seen.observed, plan, connection, changes: plan.changes };
  };
  const check = ({ plan, connection }: Looked): void => refuse(plan, connection, options);
  const done = await underLease(parts, { bucket, specs: [spec] }, signal, async (run) => {
    const ended = await run({ look, check, begin: (seen, change) => begin(parts, seen, change) });
    return 'waitingFor' in ended ? waiting(ended) : finish(parts, ended);
  });
  return done === 'held' ? waiting({ waitingFor: 'another change of a connection' }) : done;
}

/** Makes the notification again that was taken away. Throws `connect.not-applied`, `connect.not-paused`, and what an apply throws. */
export async function resume(parts: ChangeParts, bucket: string, signal: AbortSignal): Promise<Applied> {
  const connection = await requireConnection(parts.state, bucket, signal);
  // an apply that no pause preceded has its own plan to agree to
  const isResuming = connection.state === 'applying' && connection.pausedAtMs !== undefined;
  if (connection.state !== 'paused' && !isResuming)
    throw new RequestError('connect.not-paused', `the notification of ${bucket} is not paused`);
  return apply(parts, specOf(connection), { isAgreed: true, isResuming: true }, signal);
}

async function requireConnection(state: StateStore, bucket: string, signal: AbortSignal): Promise<ConnectionRecord> {
  const connection = await readRecord(state, refs.connection(bucket), signal);
  if (connection !== undefined) return connection;
  throw new RequestError(
    'connect.not-applied',
    `Tally has created nothing in AWS for ${bucket}. To see the plan: \`tally bucket add ${bucket} --plan\``,
  );
}

/** Stores what is about to be made, before it is made. */
async function begin({ state, clock }: ChangeParts, { plan, connection: before }: Looked, change: Change): Promise<void> {
  const { spec, token } = plan;
  const nowMs = clock.nowMs();
  const isOthers = change.part === 'trail' || (change.part === 'subscription' && change.action === 'create');
  const next: ConnectionRecord = {
    ...(before && madeSchema.parse(before)),
    ...spec,
    earlier: earlierAfter(before, spec),
    state: 'applying',
    token,
    made: madeWith(before, [...(isOthers ? [change.name] : []), ...(await madeByOthers(state, spec))]),
    changedAtMs: nowMs,
  };
  await updateRecord(state, refs.connection(spec.bucket), () => next);
  await forgetArrivals(state, spec, nowMs);
}

/**
 * The gap is stored first, and the connection last: a process that is killed in between opens the gap again, and what the record of
 * the bucket still believes is no proof of what was made.
 */
async function finish(parts: ChangeParts, { plan, connection: before }: Looked): Promise<Applied> {
  const { state, clock } = parts;
  const { spec } = plan;
  const isProven = provenBy(spec, await readRecord(state, refs.bucket(spec.bucket))) !== undefined;
  const nowMs = clock.nowMs();
  if (before?.state === 'applied' && isFor(spec, before)) return { state: 'applied', connection: before, changed: false };
  // of what a person wired nothing is changed now. Only an event proves what was made, and what is known to be broken stays so until the watch finds it in order
  if (before !== undefined || spec.byHand !== true)
    await openChangeGap(parts, spec, { isUrgent: true, ...(!isProven && { unproven: 'events' }) });
  const { token: _, pausedAtMs: __, ...kept } = before === undefined ? {} : madeSchema.partial().parse(before);
  await followWay(state, spec);
  const next: ConnectionRecord = {
    ...kept,
    ...spec,
    made: madeWith(before, await madeByOthers(state, spec)),
    earlier: earlierAfter(before, spec),
    state: 'applied',
    changedAtMs: nowMs,
  };
  await updateRecord(state, refs.connection(spec.bucket), () => next);
  // S3's test event may have come while the gap was being stored
  const proven = isProven ? undefined : provenBy(spec, await readRecord(state, refs.bucket(spec.bucket)));
  if (proven !== undefined) await proveGap(parts, proven);
  return { state: 'applied', connection: next, changed: true };
}

/** Records are believed by their source: that of the bucket becomes what was made. S3 has just answered requests that name this account as the owner, but a store of one's own has other accounts. */
async function followWay(state: StateStore, spec: ConnectionSpec): Promise<void> {
  const { bucket, source, bucketAccount: account } = spec;
  const way = { source, ...defined({ topicArn: desired(spec).subscription?.topicArn }) };
  await updateRecord(
    state,
    refs.bucket(bucket),
    (record) => record && { ...withWay(record, way), ...(source !== 'webhook' && { account }) },
  );
}

interface Way {
  readonly source: BucketSource;
  readonly topicArn?: string;
}

/** The record with another way of its events. Without a topic, whatever the source's form has counts. What arrived by another way proves nothing, and what was found of it says nothing. */
export function withWay(record: BucketRecord, { source, topicArn }: Way): BucketRecord {
  if (source === record.source && topicArn === record.topicArn) return record;
  const without = omit(record, 'topicArn', 'provenAtMs', 'connectionCheck', 'arrived', 'webhookTokens');
  return { ...without, source, ...defined({ topicArn }), waySinceMs: beginOfWay(record, source) };
}

/** By the clocks of S3 and this machine. Events of the same form may come by the way of before until AWS has applied the change. */
function beginOfWay({ source: before, checkedAtMs, versioning, waySinceMs: madeMs = 0 }: BucketRecord, source: BucketSource): number {
  const isSameForm = dialects.some((dialect) => isFormOf(before, dialect) && isFormOf(source, dialect));
  return Math.max(checkedAtMs, versioning.observedAtMs, madeMs) + (isSameForm ? appliedWithinMs({ source }) : 0);
}

/** An apply for another bucket may have made the subscription to the named topic. That bucket may be removed first. */
async function madeByOthers(state: StateStore, spec: ConnectionSpec): Promise<readonly string[]> {
  const { subscription } = desired(spec);
  if (subscription === undefined || spec.topicArn === undefined) return [];
  const name = subscriptionName(subscription);
  const all = await listAllRecords(state, 'connection', connectionSchema);
  return all.some(({ made }) => made.includes(name)) ? [name] : [];
}

/** What arrived before this change proves nothing about what is there after it. */
async function forgetArrivals(state: StateStore, spec: ConnectionSpec, waySinceMs: number): Promise<void> {
  const topicArn = desired(spec).subscription?.topicArn;
  await updateRecord(
    state,
    refs.bucket(spec.bucket),
    (record) =>
      record && {
        ...omit(record, 'provenAtMs', 'arrived'),
        waySinceMs,
        // by it events of this connection are known; the record of another source follows when its parts are made
        ...(record.source === spec.source && defined({ topicArn })),
      },
  );
}

function madeWith(before: ConnectionRecord | undefined, more: readonly string[]): string[] {
  return [...new Set([...(before?.made ?? []), ...more])];
}

/** The record, if events have proven this connection. */
function provenBy(spec: ConnectionSpec, record: BucketRecord | undefined): BucketRecord | undefined {
  const isSame = record?.source === spec.source && record.topicArn === desired(spec).subscription?.topicArn;
  return isSame && record.provenAtMs !== undefined ? record : undefined;
}

function waiting({ waitingFor }: Waiting): Applied {
  return { state: 'applying', waitingFor, retryAfterMs: RETRY_MS };
}

/** Whether the record is about exactly this spec. */
function isFor(spec: ConnectionSpec, connection: ConnectionRecord): boolean {
  return canonicalJson(spec) === canonicalJson(specOf(connection));
}

/** Throws what keeps the plan from being applied. */
export function refuse(plan: Plan, connection: ConnectionRecord | undefined, options: ApplyOptions): void {
  refuseState(plan.spec.bucket, connection, options);
  const blocking = plan.findings.find(({ blocks }) => blocks);
  if (blocking !== undefined) {
    const { code, what, why, fix } = blocking;
    const isOfItsOwn = code === 'connect.overlap' || code === 'connect.unknown-configuration';
    throw new RequestError(isOfItsOwn ? code : 'connect.blocked', `${what}: ${why}. ${inSentence(fix)}`, {
      finding: code,
      token: plan.token,
    });
  }
  refuseUnseen(plan, connection, options);
}

function refuseState(bucket: string, connection: ConnectionRecord | undefined, { isResuming }: ApplyOptions): void {
  if (connection?.state === 'removing') {
    throw new RequestError('connect.removing', `${bucket} is being removed: repeat \`tally bucket remove ${bucket}\``);
  }
  if (connection?.state === 'paused' && isResuming !== true) {
    throw new RequestError('connect.paused', `the notification of ${bucket} is paused: resume it with \`tally bucket resume ${bucket}\``);
  }
}

/** A person must have seen what the plan touches of others. */
function refuseUnseen(plan: Plan, connection: ConnectionRecord | undefined, options: ApplyOptions): void {
  const { bucket } = plan.spec;
  const { token, isAgreed, isSwitchAgreed } = options;
  if (token !== undefined && token !== plan.token) {
    const detail = `the plan ${token} of ${bucket} is outdated: review the current one with the option \`--plan\``;
    throw new RequestError('connect.plan-outdated', detail, { token: plan.token });
  }
  const isContinued = connection?.state === 'applying' && connection.token === plan.token;
  const unseen = plan.foreign.filter(({ kind }) => isSwitchAgreed !== true || kind !== 'switch');
  if (unseen.length === 0 || token !== undefined || isAgreed === true || isContinued) return;
  throw new RequestError(
    'connect.plan-needed',
    `the plan touches resources that are not Tally's (${plan.foreign.map(touchedText).join('; ')}). Review it with the option \`--plan\`, then repeat the command with \`--agree ${plan.token}\``,
    { token: plan.token, plan: changesText(plan.changes) },
  );
}

// ── pausing and removing ───────────────────────────────────────────────────────────────────────────────────────────

/**
 * Takes away everything, or with `keepAws` only forgets it. Returns what stays because others have altered it; undefined if Tally made
 * nothing for the bucket, or forgot it. Throws `connect.removing` if a part is left after 20 s, and what AWS refuses: repeat it then.
 */
export async function removeParts(
  parts: ChangeParts,
  bucket: string,
  keepAws: boolean,
  signal?: AbortSignal,
): Promise<readonly Kept[] | undefined> {
  const { state } = parts;
  const ref = refs.connection(bucket);
  const known = await readRecord(state, ref, signal);
  if (known === undefined) return undefined;
  return underPass(parts, known, signal, async (run) => {
    if (keepAws) return forget(state, bucket);
    const used = await usedByOthers(state, bucket);
    await noteRemoving(parts, bucket);
    const connection = await updateRecord(state, ref, (current) => current && { ...current, state: 'removing' as const });
    if (connection === undefined) return undefined;
    const specs = [specOf(connection), ...earlierSpecs(connection)];
    const kept = await removeSpecs({ ...parts, run }, specs, { made: connection.made, used }, signal);
    await forget(state, bucket);
    return kept;
  });
}

async function forget(state: StateStore, bucket: string): Promise<undefined> {
  await removeRecord(state, refs.connection(bucket).id);
}

/**
 * The bucket's status says that events are missing until the removal has ended. It is stored first: a removal that was killed before
 * it began is found in order again by the watch.
 */
async function noteRemoving({ state, clock }: ChangeParts, bucket: string): Promise<void> {
  const nowMs = clock.nowMs();
  const { code, what } = removingFinding(bucket);
  const connectionCheck: ConnectionCheck = {
    state: 'broken',
    atMs: nowMs,
    sinceMs: nowMs,
    findings: [{ code, what }],
    brokenSinceMs: nowMs,
  };
  await updateRecord(state, refs.bucket(bucket), (record) => record && { ...record, connectionCheck });
}

/**
 * Takes away what is left of the sources that the bucket had before, and returns what stays. Undefined: nothing is to be taken away
 * now. As long as its present source is not applied, or its gap is open, the earlier parts may deliver what the present ones do not.
 */
export async function removeEarlier(parts: ChangeParts, bucket: string, signal?: AbortSignal): Promise<readonly Kept[] | undefined> {
  const { state } = parts;
  const known = await settledEarlier(state, bucket, signal);
  if (known === undefined) return undefined;
  return underPass(parts, known, signal, async (run) => {
    const connection = await settledEarlier(state, bucket, signal);
    if (connection === undefined) return undefined;
    const still = desired(specOf(connection));
    const keepsTrails = areTrailsNeeded(connection);
    const specs = earlierSpecs(connection).map((spec) => (keepsTrails ? omit(spec, 'trailArn') : spec));
    const kept = await removeSpecs(
      { ...parts, run },
      specs,
      { made: connection.made, used: await usedByOthers(state, bucket), still },
      signal,
    );
    if (isHandedOver(connection)) {
      await openChangeGap(parts, connection, { unproven: 'events' });
      await forgetProof(parts, bucket);
    }
    // what others make in place of what is gone is theirs
    const present = new Set([still.subscription && subscriptionName(still.subscription), still.trailArn]);
    const made = connection.made.filter((name) => present.has(name) || (keepsTrails && isTrail(name)));
    await updateRecord(state, refs.connection(bucket), () => ({ ...omit(connection, 'earlier'), made }));
    return kept;
  });
}

/**
 * Takes away exactly our notification, for the moment in which another one is made that would overlap with it. Throws
 * `connect.not-applied`, and `connect.blocked` for a source that needs no notification.
 */
export async function pause(parts: ChangeParts, bucket: string, signal: AbortSignal): Promise<ConnectionRecord> {
  const { state, clock, lookAt } = parts;
  const paused = await underLease(parts, { bucket, specs: [] }, signal, async (run) => {
    const connection = await requireConnection(state, bucket, signal);
    const { source } = connection;
    if (source !== 'notification') {
      const detail = `${bucket} has the source ${source}, which needs no notification from Tally, so nothing can overlap with it`;
      throw new RequestError('connect.blocked', detail);
    }
    if (connection.byHand === true)
      throw new RequestError('connect.blocked', `a person wired ${bucket}, so its notification is not Tally's to pause`);
    if (connection.state === 'removing') throw new RequestError('connect.removing', `${bucket} is being removed`);
    // stored first: nothing restores what is about to go. A pause that was interrupted is completed by the next one
    const next = { ...connection, state: 'paused' as const, pausedAtMs: connection.pausedAtMs ?? clock.nowMs() };
    const look = async () => {
      const seen = await lookAt(specOf(connection), signal);
      const step = notificationRemoval(seen);
      if (step !== undefined && 'reason' in step)
        throw new RequestError('connect.blocked', `Tally leaves ${step.name} unchanged: ${step.reason}`);
      await updateRecord(state, refs.connection(bucket), () => next);
      return { observed: seen.observed, changes: step === undefined ? [] : [step] };
    };
    const ended = await run({ look });
    if ('observed' in ended) return next;
    throw new RequestError('connect.busy', `the notifications of ${bucket} are being changed: repeat \`tally bucket pause ${bucket}\``);
  });
  if (paused === 'held') throw busy();
  return paused;
}

/** Takes the parts of specs away, as far as nothing else needs them. */
async function removeSpecs(
  { lookAt, run }: ChangeParts & { readonly run: Run },
  specs: readonly ConnectionSpec[],
  remains: Remains,
  signal?: AbortSignal,
): Promise<readonly Kept[]> {
  const kept = new Map<string, Kept>();
  for (const spec of specs) {
    const look = async () => {
      const seen = await lookAt(spec, signal, { mayBeGone: true });
      return { observed: seen.observed, ...removal(seen, remains) };
    };
    const ended = await run({ look });
    if (!('kept' in ended)) {
      const { bucket } = spec;
      throw new RequestError(
        'connect.removing',
        `the removal of ${bucket} waits for ${ended.waitingFor}: repeat \`tally bucket remove ${bucket}\``,
      );
    }
    for (const each of ended.kept) kept.set(each.name, each);
  }
  return [...kept.values()];
}

/** What other buckets need. One that is being removed needs nothing any more. Throws `record.newer`: what that one needs is not known. */
async function usedByOthers(state: StateStore, bucket: string): Promise<Remains['used']> {
  const connections = (await listAllEntries(state, 'connection')).map((entry) => parseEntry(entry, connectionSchema));
  const others = connections.filter((each) => each.bucket !== bucket && each.state !== 'removing');
  return new Set(others.flatMap(namedBy));
}

/** The named topics to which a rule sends, and each named topic with the queues that admit it. */
function namedBy(connection: ConnectionRecord): readonly string[] {
  return [connection, ...earlierSpecs(connection)].flatMap((spec) => {
    const { topicArn } = spec;
    if (topicArn === undefined) return [];
    const links = queuesOf(spec).map((queueArn) => subscriptionName({ topicArn, queueArn }));
    return desired(spec).topic === undefined ? links : [topicArn, ...links];
  });
}

/** Who needs what is shared must not change meanwhile. */
async function underPass<Result>(
  parts: ChangeParts,
  connection: ConnectionRecord,
  signal: AbortSignal | undefined,
  work: (run: Run) => Promise<Result>,
): Promise<Result> {
  const done = await underLease(parts, { bucket: connection.bucket, specs: [connection, ...earlierSpecs(connection)] }, signal, work);
  if (done === 'held') throw busy();
  return done;
}

/** Whether trails of before may record the bucket now: its source needs one, and Tally has put the bucket into no other. They go with the bucket then. */
function areTrailsNeeded({ source, trailArn, byHand }: ConnectionRecord): boolean {
  return source === 'routed' && (trailArn === undefined || byHand === true);
}

/** Whether a person wires now what Tally made: the events of both look the same, so what has arrived is no proof once Tally's parts are gone. */
function isHandedOver({ source, topicArn, byHand, earlier = [] }: ConnectionRecord): boolean {
  if (byHand !== true || source === 'topic') return false;
  return earlier.some((each) => each.byHand !== true && each.source === source && each.topicArn === topicArn);
}

/** The connection, if it has earlier parts that may go. */
export async function settledEarlier(state: StateStore, bucket: string, signal?: AbortSignal): Promise<ConnectionRecord | undefined> {
  const connection = await readRecord(state, refs.connection(bucket), signal);
  if (connection?.state !== 'applied' || (connection.earlier ?? []).length === 0) return undefined;
  const mark = await readRecord(state, refs.gap(markId(bucket)), signal);
  return mark?.reasons.some(({ kind }) => kind === 'connection') === true ? undefined : connection;
}
