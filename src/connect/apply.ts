/**
 * Applies a plan, pauses and resumes a notification, and takes away what Tally made. One call is one pass of the loop, which a caller
 * repeats until it is done. The connection is stored in the bucket's record before its parts are made, and goes with the record,
 * after them.
 */
import {
  bucketRecordSchema,
  specOf,
  type BucketRecord,
  type BucketSource,
  type Connection,
  type ConnectionSpec,
} from '../records/bucket.ts';
import { dialects, isFormOf } from '../events/record.ts';
import { inSentence } from '../base/commands.ts';
import { defined, omit } from '../base/defined.ts';
import { markId } from '../records/dirty.ts';
import { RequestError } from '../base/request-error.ts';
import { appliedWithinMs, forgetProof, openChangeGap, proveGap } from '../observing/gaps.ts';
import { notConnected, requireBucket } from '../observing/known-buckets.ts';
import type { ConnectionView } from '../registry/contract/connections.ts';
import type { TakeLease } from '../store/lease.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import { listAllEntries, parseEntry, readRecord, refs, updateRecord } from '../store/stored.ts';
import { busy, RETRY_MS, underLease, type Run } from './loop.ts';
import { parseArn } from './names.rules.ts';
import { changesText, touchedText, type Change, type Kept, type Plan } from './plan.rules.ts';
import { canonicalJson } from './policy.rules.ts';
import { queuesOf, subscriptionName, type Remains } from './sources/look.ts';
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

/**
 * Makes in AWS what the bucket must have. Throws `connect.plan-needed`, `connect.plan-outdated`, `connect.paused`, `connect.removing`,
 * the code of what blocks the plan, `connect.changed-meanwhile`, and what AWS refuses.
 */
export async function apply(
  parts: ChangeParts,
  spec: ConnectionSpec,
  options: ApplyOptions,
  signal?: AbortSignal,
): Promise<ConnectionView> {
  const { bucket } = spec;
  const look = async () => {
    const plan = diff(await parts.lookAt(spec, signal));
    return { plan, changes: plan.changes, record: await requireBucket(parts.state, bucket, signal) };
  };
  const done = await underLease(parts, { bucket, specs: [spec] }, signal, async (run) => {
    const ended = await run(look, async ({ plan, record }, change) => {
      refuse(plan, record.connection, options);
      await begin(parts, spec, change, options);
    });
    if ('waitingFor' in ended) return ended;
    refuse(ended.plan, ended.record.connection, options);
    return finish(parts, spec, ended.record);
  });
  if (done !== 'held' && 'state' in done) return done;
  const waitingFor = done === 'held' ? 'another change of a connection' : done.waitingFor;
  return { bucket, state: 'applying', waiting_for: waitingFor, retry_after_ms: RETRY_MS };
}

/** Makes the notification again that was taken away. Throws `connect.not-applied`, `connect.not-paused`, and what an apply throws. */
export async function resume(parts: ChangeParts, bucket: string, signal: AbortSignal): Promise<ConnectionView> {
  const connection = await requireConnection(parts.state, bucket, signal);
  if (connection.state !== 'paused') throw new RequestError('connect.not-paused', `the notification of ${bucket} is not paused`);
  return apply(parts, specOf(connection), { isAgreed: true, isResuming: true }, signal);
}

async function requireConnection(state: StateStore, bucket: string, signal: AbortSignal): Promise<Connection> {
  const { connection } = await requireBucket(state, bucket, signal);
  if (connection !== undefined) return connection;
  throw new RequestError(
    'connect.not-applied',
    `Tally has created nothing in AWS for ${bucket}. To see the plan: \`tally bucket add ${bucket} --plan\``,
  );
}

/** Stores what is about to be made, before it is made. What arrived before proves nothing about what is there after it. */
async function begin({ state, clock }: ChangeParts, spec: ConnectionSpec, change: Change, { isResuming }: ApplyOptions): Promise<void> {
  const nowMs = clock.nowMs();
  const topicArn = desired(spec).subscription?.topicArn;
  const isOthers = change.part === 'trail' || (change.part === 'subscription' && change.action === 'create');
  const made = [...(isOthers ? [change.name] : []), ...(await madeByOthers(state, spec))];
  await changeBucket(state, spec.bucket, (record) => ({
    ...omit(record, 'provenAtMs', 'arrived'),
    waySinceMs: nowMs,
    // by it events of this connection are known; the record of another source follows when its parts are made
    ...(record.source === spec.source && defined({ topicArn })),
    // only another resume continues one
    connection: connectionOf(spec, { state: isResuming === true ? 'paused' : 'applying', made, changedAtMs: nowMs }, record.connection),
  }));
}

/** The gap is stored first: a process that is killed in between opens it again. */
async function finish(parts: ChangeParts, spec: ConnectionSpec, before: BucketRecord): Promise<ConnectionView> {
  const { state, clock } = parts;
  const { bucket, source, bucketAccount: account } = spec;
  const { connection: known } = before;
  if (known?.state === 'applied' && isFor(spec, known)) return { bucket, state: 'applied', source, changed: false };
  const way = { source, ...defined({ topicArn: desired(spec).subscription?.topicArn }) };
  const isProven = isProvenBy(before, way);
  // of what a person wired nothing is changed now
  const isMadeByUs = known !== undefined || spec.byHand !== true;
  if (isMadeByUs) await openChangeGap(parts, spec, { isUrgent: true, unproven: isProven ? 'none' : 'events' });
  const made = await madeByOthers(state, spec);
  const connection = connectionOf(spec, { state: 'applied', made, changedAtMs: clock.nowMs() }, known);
  const record = await changeBucket(state, bucket, (current) => ({
    // what the last check found may no longer be so
    ...omit(withWay(current, way), 'connectionCheck'),
    // S3 has just answered requests that name this account as the owner, but a store of one's own has other accounts
    ...(source !== 'webhook' && { account }),
    connection,
  }));
  // S3's test event may have come while the gap was being stored
  if (!isProven && isProvenBy(record, way)) await proveGap(parts, record);
  return { bucket, state: 'applied', source, changed: true };
}

function isFor(spec: ConnectionSpec, connection: Connection): boolean {
  return canonicalJson(spec) === canonicalJson(specOf(connection));
}

/** Throws `bucket.not-connected`. */
async function changeBucket(state: StateStore, bucket: string, change: (record: BucketRecord) => BucketRecord): Promise<BucketRecord> {
  const record = await updateRecord(state, refs.bucket(bucket), (current) => current && change(current));
  if (record === undefined) throw notConnected(bucket);
  return record;
}

/** The connection for this spec, with what it was before and what was made for that. */
function connectionOf(
  spec: ConnectionSpec,
  { made, ...more }: Pick<Connection, 'state' | 'changedAtMs'> & { readonly made: readonly string[] },
  before: Connection | undefined,
): Connection {
  return { ...spec, ...more, earlier: earlierAfter(before, spec), made: [...new Set([...(before?.made ?? []), ...made])] };
}

/** The most ways that are remembered: each of the five sources, some topics and queues. */
const EARLIER_MAX = 10;

/** What is left over after a connection becomes another: what it was, without what it is now. Trails are known by what was made. */
function earlierAfter(before: Connection | undefined, now: ConnectionSpec): ConnectionSpec[] {
  if (before === undefined) return [];
  // these give no part another name, place or owner
  const wayOf = (spec: ConnectionSpec): string =>
    canonicalJson(omit(specOf(spec), 'bucketAccount', 'enrich', 'deadLetterArn', 'trailArn', 'trailBucket'));
  const last = specOf(before);
  const others = (before.earlier ?? []).filter((each) => wayOf(each) !== wayOf(last));
  return [...others, last].filter((each) => wayOf(each) !== wayOf(now)).slice(-EARLIER_MAX);
}

type Way = Pick<BucketRecord, 'source' | 'topicArn'>;

function isSameWay(record: BucketRecord, { source, topicArn }: Way): boolean {
  return source === record.source && topicArn === record.topicArn;
}

function isProvenBy(record: BucketRecord, way: Way): boolean {
  return record.provenAtMs !== undefined && isSameWay(record, way);
}

/** The record with another way of its events. Without a topic, whatever the source's form has counts. What arrived by another way proves nothing. */
export function withWay(record: BucketRecord, way: Way): BucketRecord {
  if (isSameWay(record, way)) return record;
  const without = omit(record, 'topicArn', 'provenAtMs', 'arrived', 'webhookTokens');
  return { ...without, ...way, waySinceMs: beginOfWay(record, way.source) };
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
  return (await allConnections(state)).some(({ made }) => made.includes(name)) ? [name] : [];
}

/** Throws `record.newer`: what another bucket needs must be known. */
async function allConnections(state: StateStore): Promise<readonly Connection[]> {
  return (await listAllEntries(state, 'bucket')).flatMap((entry) => parseEntry(entry, bucketRecordSchema).connection ?? []);
}

/** Throws what keeps the plan from being applied. */
export function refuse(plan: Plan, connection: Connection | undefined, options: ApplyOptions): void {
  const { bucket } = plan.spec;
  if (connection?.state === 'removing')
    throw new RequestError('connect.removing', `${bucket} is being removed: repeat \`tally bucket remove ${bucket}\``);
  if (connection?.state === 'paused' && options.isResuming !== true)
    throw new RequestError('connect.paused', `the notification of ${bucket} is paused: resume it with \`tally bucket resume ${bucket}\``);
  const blocking = plan.findings.find(({ blocks }) => blocks);
  if (blocking !== undefined) {
    const { code, what, why, fix } = blocking;
    const isOfItsOwn = code === 'connect.overlap' || code === 'connect.unknown-configuration';
    throw new RequestError(isOfItsOwn ? code : 'connect.blocked', `${what}: ${why}. ${inSentence(fix)}`, {
      finding: code,
      token: plan.token,
    });
  }
  refuseUnseen(plan, options);
}

/** A person must have seen what the plan touches of others. */
function refuseUnseen({ spec: { bucket }, token: current, foreign, changes }: Plan, options: ApplyOptions): void {
  const { token, isAgreed, isSwitchAgreed } = options;
  if (token !== undefined && token !== current) {
    const detail = `the plan ${token} of ${bucket} is outdated: review the current one with the option \`--plan\``;
    throw new RequestError('connect.plan-outdated', detail, { token: current });
  }
  const unseen = foreign.filter(({ kind }) => isSwitchAgreed !== true || kind !== 'switch');
  if (unseen.length === 0 || token !== undefined || isAgreed === true) return;
  throw new RequestError(
    'connect.plan-needed',
    `the plan touches resources that are not Tally's (${foreign.map(touchedText).join('; ')}). Review it with the option \`--plan\`, then repeat the command with \`--agree ${current}\``,
    { token: current, plan: changesText(changes) },
  );
}

// ── pausing and removing ───────────────────────────────────────────────────────────────────────────────────────────

/**
 * Takes away exactly our notification, for the moment in which another one is made that would overlap with it. Throws
 * `connect.not-applied`, and `connect.blocked` for a notification that is not Tally's.
 */
export async function pause(parts: ChangeParts, bucket: string, signal: AbortSignal): Promise<ConnectionView> {
  const { state, clock, lookAt } = parts;
  const paused = await underLease(parts, { bucket, specs: [] }, signal, async (run) => {
    const connection = await requireConnection(state, bucket, signal);
    const { source, byHand } = connection;
    if (connection.state === 'removing') throw new RequestError('connect.removing', `${bucket} is being removed`);
    if (source !== 'notification' || byHand === true) {
      const who = byHand === true ? 'a person wired it' : `it has the source ${source}`;
      throw new RequestError('connect.blocked', `${bucket} has no notification of Tally's to pause: ${who}`);
    }
    const next = connection.state === 'paused' ? connection : { ...connection, state: 'paused' as const, changedAtMs: clock.nowMs() };
    const ended = await run(async () => {
      const step = notificationRemoval(await lookAt(specOf(connection), signal));
      if (step !== undefined && 'reason' in step)
        throw new RequestError('connect.blocked', `Tally leaves ${step.name} unchanged: ${step.reason}`);
      // stored first: nothing restores what is about to go. A pause that was interrupted is completed by the next one
      await changeBucket(state, bucket, (record) => ({ ...record, connection: next }));
      return { changes: step === undefined ? [] : [step] };
    });
    if ('changes' in ended) return { bucket, state: 'paused' as const, source };
    throw new RequestError('connect.busy', `the notifications of ${bucket} are being changed: repeat \`tally bucket pause ${bucket}\``);
  });
  if (paused === 'held') throw busy();
  return paused;
}

/**
 * Takes away everything, or with `keepAws` nothing, before the bucket's record is removed: until then no apply makes anything again.
 * Returns what stays because it is others'. Throws `connect.removing` if a part is left after a pass, and what AWS refuses: repeat it then.
 */
export async function removeParts(parts: ChangeParts, bucket: string, keepAws: boolean, signal?: AbortSignal): Promise<readonly Kept[]> {
  const { state, clock } = parts;
  const known = (await readRecord(state, refs.bucket(bucket), signal))?.connection;
  if (known === undefined) return [];
  return underTake(parts, known, signal, async (run) => {
    const used = keepAws ? new Set<string>() : await usedByOthers(state, bucket);
    const { connection } = await changeBucket(state, bucket, (record) => ({
      ...record,
      ...(record.connection && { connection: { ...record.connection, state: 'removing', changedAtMs: clock.nowMs() } }),
    }));
    if (connection === undefined || keepAws) return [];
    const specs = [specOf(connection), ...specsOfBefore(connection)];
    return removeSpecs({ ...parts, run }, specs, { made: connection.made, used }, signal);
  });
}

/**
 * Takes away what is left of the sources that the bucket had before, and returns what stays. Undefined: nothing is to be taken away
 * now. As long as its present source is not applied, or its gap is open, the earlier parts may deliver what the present ones do not.
 */
export async function removeEarlier(parts: ChangeParts, bucket: string, signal?: AbortSignal): Promise<readonly Kept[] | undefined> {
  const { state } = parts;
  const known = await settledEarlier(state, bucket, signal);
  if (known === undefined) return undefined;
  return underTake(parts, known, signal, async (run) => {
    const connection = await settledEarlier(state, bucket, signal);
    if (connection === undefined) return undefined;
    const still = desired(specOf(connection));
    const remains = { made: connection.made, used: await usedByOthers(state, bucket), still };
    // any trail that records the bucket feeds the rule, whoever made the rule and whatever trail the settings name now
    const isRouted = connection.source === 'routed';
    const kept = await removeSpecs({ ...parts, run }, specsOfBefore(connection, isRouted), remains, signal);
    if (isHandedOver(connection)) {
      await openChangeGap(parts, connection, { unproven: 'events' });
      await forgetProof(parts, bucket);
    }
    // what others make in place of what is gone is theirs
    const made = connection.made.filter(
      (name) => (isRouted && isTrail(name)) || (still.subscription !== undefined && name === subscriptionName(still.subscription)),
    );
    await changeBucket(state, bucket, (record) => ({ ...record, connection: { ...omit(connection, 'earlier'), made } }));
    return kept;
  });
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
    const ended = await run(async () => removal(await lookAt(spec, signal, { mayBeGone: true }), remains));
    if ('waitingFor' in ended) {
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

/** What other buckets need: the named topics to which a rule sends, and each named topic with the queues that admit it. */
async function usedByOthers(state: StateStore, bucket: string): Promise<Remains['used']> {
  // one that is being removed needs nothing any more
  const others = (await allConnections(state)).filter((each) => each.bucket !== bucket && each.state !== 'removing');
  const names = others
    .flatMap((each) => [each, ...specsOfBefore(each)])
    .flatMap((spec) => {
      const { topicArn } = spec;
      if (topicArn === undefined) return [];
      const links = queuesOf(spec).map((queueArn) => subscriptionName({ topicArn, queueArn }));
      return desired(spec).topic === undefined ? links : [topicArn, ...links];
    });
  return new Set(names);
}

/** Who needs what is shared must not change meanwhile. */
async function underTake<Result>(
  parts: ChangeParts,
  connection: Connection,
  signal: AbortSignal | undefined,
  work: (run: Run) => Promise<Result>,
): Promise<Result> {
  const { bucket } = connection;
  const done = await underLease(parts, { bucket, specs: [connection, ...specsOfBefore(connection)] }, signal, work);
  if (done === 'held') throw busy();
  return done;
}

/** The specs that a connection had before it was changed, and unless they stay one for each trail that got the bucket in a selector. */
function specsOfBefore(connection: Connection, doTrailsStay = false): readonly ConnectionSpec[] {
  const { earlier = [], made } = connection;
  const routed = { ...omit(specOf(connection), 'topicArn', 'byHand', 'trailBucket'), source: 'routed' } as const;
  const trails = doTrailsStay ? [] : made.filter(isTrail);
  return [...earlier.map((spec) => (doTrailsStay ? omit(spec, 'trailArn') : spec)), ...trails.map((trailArn) => ({ ...routed, trailArn }))];
}

/** Whether it is the name of a trail among what was made. */
function isTrail(name: string): boolean {
  return parseArn(name)?.service === 'cloudtrail';
}

/** Whether a person wires now what Tally made: the events of both look the same, so what has arrived is no proof once Tally's parts are gone. */
function isHandedOver({ source, topicArn, byHand, earlier = [] }: Connection): boolean {
  if (byHand !== true || source === 'topic') return false;
  return earlier.some((each) => each.byHand !== true && each.source === source && each.topicArn === topicArn);
}

/** The connection, if it has earlier parts that may go. */
export async function settledEarlier(state: StateStore, bucket: string, signal?: AbortSignal): Promise<Connection | undefined> {
  const { connection } = (await readRecord(state, refs.bucket(bucket), signal)) ?? {};
  if (connection?.state !== 'applied' || (connection.earlier ?? []).length === 0) return undefined;
  const mark = await readRecord(state, refs.gap(markId(bucket)), signal);
  return mark?.reasons.some(({ kind }) => kind === 'connection') === true ? undefined : connection;
}
