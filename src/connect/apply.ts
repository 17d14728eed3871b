/**
 * Applies plans, pauses and resumes notifications, and removes what Tally created. One call is one pass of the loop, which the caller
 * repeats until it is done. The connection is stored in the bucket's record before its parts are made, and is deleted with the record
 * after its parts.
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
import { notConnected, requireBucket } from '../observing/buckets.ts';
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
  /** A person agrees that the bucket's events also go to EventBridge, and to no other change. */
  readonly isSwitchAgreed?: boolean;
  /** A person agreed earlier to whatever the plan touches. */
  readonly isAgreed?: boolean;
  /** The paused notification is to be restored. */
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

/** Restores a paused notification. Throws `connect.blocked` if it is not paused, and what an apply throws. */
export async function resume(parts: ChangeParts, bucket: string, signal: AbortSignal): Promise<ConnectionView> {
  const connection = await requireConnection(parts.state, bucket, signal);
  if (connection.state !== 'paused') throw new RequestError('connect.blocked', `${bucket}'s notification is not paused`);
  return apply(parts, specOf(connection), { isAgreed: true, isResuming: true }, signal);
}

async function requireConnection(state: StateStore, bucket: string, signal: AbortSignal): Promise<Connection> {
  const { connection } = await requireBucket(state, bucket, signal);
  if (connection !== undefined) return connection;
  throw new RequestError(
    'connect.blocked',
    `Tally has created nothing in AWS for ${bucket}. To see the plan: \`tally bucket add ${bucket} --plan\``,
  );
}

/** Stores what is about to be made. Events that arrived before the change prove nothing about the connection after it. */
async function begin({ state, clock }: ChangeParts, spec: ConnectionSpec, change: Change, { isResuming }: ApplyOptions): Promise<void> {
  const nowMs = clock.nowMs();
  const topicArn = desired(spec).subscription?.topicArn;
  const isOthers = change.part === 'trail' || (change.part === 'subscription' && change.action === 'create');
  const made = [...(isOthers ? [change.name] : []), ...(await madeByOthers(state, spec))];
  await changeBucket(state, spec.bucket, (record) => ({
    ...omit(record, 'provenAtMs', 'arrived'),
    waySinceMs: nowMs,
    // identifies this connection's events; a record with another source follows once the new source's parts exist
    ...(record.source === spec.source && defined({ topicArn })),
    // only another resume continues a resume
    connection: connectionOf(spec, { state: isResuming === true ? 'paused' : 'applying', made, changedAtMs: nowMs }, record.connection),
  }));
}

/** Opens the gap before it stores the connection: after a kill in between, the gap is opened again. */
async function finish(parts: ChangeParts, spec: ConnectionSpec, before: BucketRecord): Promise<ConnectionView> {
  const { state, clock } = parts;
  const { bucket, source, bucketAccount: account } = spec;
  const { connection: known } = before;
  if (known?.state === 'applied' && isFor(spec, known)) return { bucket, state: 'applied', source, changed: false };
  const way = { source, ...defined({ topicArn: desired(spec).subscription?.topicArn }) };
  const isProven = isProvenBy(before, way);
  // nothing changes now in what a person wired
  const isMadeByUs = known !== undefined || spec.byHand !== true;
  if (isMadeByUs) await openChangeGap(parts, spec, { isUrgent: true, unproven: isProven ? 'none' : 'events' });
  const made = await madeByOthers(state, spec);
  const connection = connectionOf(spec, { state: 'applied', made, changedAtMs: clock.nowMs() }, known);
  const record = await changeBucket(state, bucket, (current) => ({
    // the last check may be out of date
    ...omit(withWay(current, way), 'connectionCheck'),
    // S3 just accepted this account as the owner; a store of one's own has no AWS accounts
    ...(source !== 'webhook' && { account }),
    connection,
  }));
  // S3's test event may have arrived while the gap was being stored
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

/** The connection for this spec, with its earlier specs and everything made for them. */
function connectionOf(
  spec: ConnectionSpec,
  { made, ...more }: Pick<Connection, 'state' | 'changedAtMs'> & { readonly made: readonly string[] },
  before: Connection | undefined,
): Connection {
  return { ...spec, ...more, earlier: earlierAfter(before, spec), made: [...new Set([...(before?.made ?? []), ...made])] };
}

/** The most earlier specs that are kept: enough for each of the five sources, with some topics and queues. */
const EARLIER_MAX = 10;

/** The specs whose parts may remain after a change. Trails do not count: `made` lists them. */
function earlierAfter(before: Connection | undefined, now: ConnectionSpec): ConnectionSpec[] {
  if (before === undefined) return [];
  // these fields change no part's name, place or owner
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

/** The record whose events come another way from now on. What arrived the old way proves nothing. Without a topic, any event of the source's form counts. */
export function withWay(record: BucketRecord, way: Way): BucketRecord {
  if (isSameWay(record, way)) return record;
  const without = omit(record, 'topicArn', 'provenAtMs', 'arrived', 'webhookTokens');
  return { ...without, ...way, waySinceMs: beginOfWay(record, way.source) };
}

/** By the clocks of S3 and this machine. Until AWS has applied the change, events of the same form may still come the old way. */
function beginOfWay({ source: before, checkedAtMs, versioning, waySinceMs: madeMs = 0 }: BucketRecord, source: BucketSource): number {
  const isSameForm = dialects.some((dialect) => isFormOf(before, dialect) && isFormOf(source, dialect));
  return Math.max(checkedAtMs, versioning.observedAtMs, madeMs) + (isSameForm ? appliedWithinMs({ source }) : 0);
}

/** Another bucket's apply may have made the subscription to the named topic, and that bucket may be removed first. */
async function madeByOthers(state: StateStore, spec: ConnectionSpec): Promise<readonly string[]> {
  const { subscription } = desired(spec);
  if (subscription === undefined || spec.topicArn === undefined) return [];
  const name = subscriptionName(subscription);
  return (await allConnections(state)).some(({ made }) => made.includes(name)) ? [name] : [];
}

/** Throws `record.newer`, since Tally must know what every other bucket needs. */
async function allConnections(state: StateStore): Promise<readonly Connection[]> {
  return (await listAllEntries(state, 'bucket')).flatMap((entry) => parseEntry(entry, bucketRecordSchema).connection ?? []);
}

/** Throws what prevents an apply of the plan. */
export function refuse(plan: Plan, connection: Connection | undefined, options: ApplyOptions): void {
  const { bucket } = plan.spec;
  if (connection?.state === 'removing')
    throw new RequestError('connect.removing', `${bucket} is being removed: repeat \`tally bucket remove ${bucket}\``);
  if (connection?.state === 'paused' && options.isResuming !== true)
    throw new RequestError('connect.paused', `${bucket}'s notification is paused: resume it with \`tally bucket resume ${bucket}\``);
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

/** A person must have seen what the plan touches of other owners. */
function refuseUnseen({ spec: { bucket }, token: current, foreign, changes }: Plan, options: ApplyOptions): void {
  const { token, isAgreed, isSwitchAgreed } = options;
  if (token !== undefined && token !== current) {
    const detail = `AWS has changed since ${bucket}'s plan ${token}: review the current one with \`--plan\``;
    throw new RequestError('connect.plan-outdated', detail, { token: current });
  }
  const unseen = foreign.filter(({ kind }) => isSwitchAgreed !== true || kind !== 'switch');
  if (unseen.length === 0 || token !== undefined || isAgreed === true) return;
  throw new RequestError(
    'connect.plan-needed',
    `the plan touches other owners' resources (${foreign.map(touchedText).join('; ')}). Review it with \`--plan\`, then repeat the command with \`--agree ${current}\``,
    { token: current, plan: changesText(changes) },
  );
}

// ── pausing and removing ───────────────────────────────────────────────────────────────────────────────────────────

/**
 * Removes exactly Tally's notification, while someone creates another one that would overlap with it. Throws `connect.blocked` if there
 * is no notification of Tally's.
 */
export async function pause(parts: ChangeParts, bucket: string, signal: AbortSignal): Promise<ConnectionView> {
  const { state, clock, lookAt } = parts;
  const paused = await underLease(parts, { bucket, specs: [] }, signal, async (run) => {
    const connection = await requireConnection(state, bucket, signal);
    const { source, byHand } = connection;
    if (connection.state === 'removing') throw new RequestError('connect.removing', `${bucket} is being removed`);
    if (source !== 'notification' || byHand === true) {
      const who = byHand === true ? 'a person wired it' : `it has the source ${source}`;
      throw new RequestError('connect.blocked', `Tally has created no notification for ${bucket} that it could pause: ${who}`);
    }
    const next = connection.state === 'paused' ? connection : { ...connection, state: 'paused' as const, changedAtMs: clock.nowMs() };
    const ended = await run(async () => {
      const step = notificationRemoval(await lookAt(specOf(connection), signal));
      if (step !== undefined && 'reason' in step)
        throw new RequestError('connect.blocked', `Tally leaves ${step.name} unchanged: ${step.reason}`);
      // stored first, so that nothing restores it; the next pause completes an interrupted one
      await changeBucket(state, bucket, (record) => ({ ...record, connection: next }));
      return { changes: step === undefined ? [] : [step] };
    });
    if ('changes' in ended) return { bucket, state: 'paused' as const, source };
    throw new RequestError(
      'connect.busy',
      `another change to ${bucket}'s notifications is in progress: repeat \`tally bucket pause ${bucket}\``,
    );
  });
  if (paused === 'held') throw busy();
  return paused;
}

/**
 * Removes all of the bucket's parts, or none with `keepAws`. It blocks further applies; the caller removes the record next. Returns what
 * stays because it is not Tally's. Throws `connect.removing` if a part remains after the pass, and what AWS refuses: then repeat it.
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
 * Removes what remains of the bucket's earlier sources, and returns what stays; undefined if it is not time yet. While the present source
 * is not applied, or its gap is open, the earlier parts may deliver events that the present ones do not.
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
    // any trail that records the bucket feeds the rule, no matter who made the rule or which trail the settings name
    const isRouted = connection.source === 'routed';
    const kept = await removeSpecs({ ...parts, run }, specsOfBefore(connection, isRouted), remains, signal);
    if (isHandedOver(connection)) {
      await openChangeGap(parts, connection, { unproven: 'events' });
      await forgetProof(parts, bucket);
    }
    // whatever appears later in place of a removed part is not Tally's
    const made = connection.made.filter(
      (name) => (isRouted && isTrail(name)) || (still.subscription !== undefined && name === subscriptionName(still.subscription)),
    );
    await changeBucket(state, bucket, (record) => ({ ...record, connection: { ...omit(connection, 'earlier'), made } }));
    return kept;
  });
}

/** Removes the parts of these specs that nothing else needs. */
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
        `removing ${bucket} waits for ${ended.waitingFor}: repeat \`tally bucket remove ${bucket}\``,
      );
    }
    for (const each of ended.kept) kept.set(each.name, each);
  }
  return [...kept.values()];
}

/** What other buckets need: named topics that a rule sends to, and each named topic's links to queues. */
async function usedByOthers(state: StateStore, bucket: string): Promise<Remains['used']> {
  // a bucket that is being removed needs nothing anymore
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

/** Under leases, so that no other bucket begins to need a shared part meanwhile. */
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

/** The connection's earlier specs, and one for each trail that got the bucket in a selector, unless trails stay. */
function specsOfBefore(connection: Connection, doTrailsStay = false): readonly ConnectionSpec[] {
  const { earlier = [], made } = connection;
  const routed = { ...omit(specOf(connection), 'topicArn', 'byHand', 'trailBucket'), source: 'routed' } as const;
  const trails = doTrailsStay ? [] : made.filter(isTrail);
  return [...earlier.map((spec) => (doTrailsStay ? omit(spec, 'trailArn') : spec)), ...trails.map((trailArn) => ({ ...routed, trailArn }))];
}

/** Whether this entry of `made` is a trail. */
function isTrail(name: string): boolean {
  return parseArn(name)?.service === 'cloudtrail';
}

/** Whether a person now wires what Tally had made. Both ways' events look the same, so earlier arrivals prove nothing once Tally's parts are gone. */
function isHandedOver({ source, topicArn, byHand, earlier = [] }: Connection): boolean {
  if (byHand !== true || source === 'topic') return false;
  return earlier.some((each) => each.byHand !== true && each.source === source && each.topicArn === topicArn);
}

/** The connection, if its earlier parts may be removed. */
export async function settledEarlier(state: StateStore, bucket: string, signal?: AbortSignal): Promise<Connection | undefined> {
  const { connection } = (await readRecord(state, refs.bucket(bucket), signal)) ?? {};
  if (connection?.state !== 'applied' || (connection.earlier ?? []).length === 0) return undefined;
  const mark = await readRecord(state, refs.gap(markId(bucket)), signal);
  return mark?.reasons.some(({ kind }) => kind === 'connection') === true ? undefined : connection;
}
