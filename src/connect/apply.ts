/** Applies a plan, and resumes what was paused. One call is one pass of at most 20 s; a caller repeats it until it is applied. */
import type { BucketRecord } from '../records/bucket.ts';
import { inSentence } from '../base/commands.ts';
import { defined, omit } from '../base/defined.ts';
import { canonicalJson } from './canonical.rules.ts';
import {
  connectionSchema,
  earlierAfter,
  madeSchema,
  specOf,
  subscriptionName,
  type ConnectionRecord,
  type ConnectionSpec,
} from './connection.rules.ts';
import type { Finding } from './finding.rules.ts';
import { addCommand, changesText, touchedText, type Change, type ConnectionRequest, type Plan } from './plan.rules.ts';
import { RequestError, type RequestErrorCode } from '../base/request-error.ts';
import { openChangeGap, proveGap } from '../observing/gaps.ts';
import type { WithPorts, StateStore } from '../store/store.ts';
import { listAllRecords, readRecord, updateRecord } from '../store/stored.ts';
import { refs } from './refs.ts';
import { changed } from './connect.ts';
import { RETRY_MS, type Seen, type UnderLease, type Waiting } from './loop.ts';
import { desired, diff, type LookAt } from './sources/sources.ts';

export interface ApplyOptions {
  /** The token of a plan that a person has agreed to. */
  readonly token?: string;
  /** Whatever it touches was agreed to before: it is restored. */
  readonly isAgreed?: boolean;
  /** The notification is to come back. */
  readonly isResuming?: boolean;
  readonly skipValidation?: boolean;
  /** The request, which may ask for what is not stored: a refusal repeats its options in the commands that it names. */
  readonly asked?: ConnectionRequest;
}

export type Applied =
  /**
   * `changed`: something was made since it was applied last. `unproven`: what keeps its events from being known to arrive, although
   * nothing is left to be made.
   */
  | { readonly state: 'applied'; readonly connection: ConnectionRecord; readonly changed: boolean; readonly unproven: readonly Finding[] }
  | { readonly state: 'applying'; readonly waitingFor: string; readonly retryAfterMs: number };

/** What changes of connections need. */
export interface ChangeParts extends WithPorts<'state' | 'clock'> {
  readonly lookAt: LookAt;
  readonly underLease: UnderLease;
}

/** What one look has found. */
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
  const { state, lookAt, underLease } = parts;
  const look = async (): Promise<Looked> => {
    const seen = await lookAt(spec, signal, options);
    const plan = diff(seen);
    const connection = await readRecord(state, refs.connection(bucket), signal);
    return { observed: seen.observed, plan, connection, changes: plan.changes };
  };
  const check = ({ plan, connection }: Looked): void => refuse(plan, connection, options);
  const done = await underLease({ bucket, specs: [spec] }, signal, async (pass) => {
    const ended = await pass.run({ look, check, begin: (seen, change) => begin(parts, seen, change) });
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

export async function requireConnection(state: StateStore, bucket: string, signal: AbortSignal): Promise<ConnectionRecord> {
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
    made: madeWith(before, isOthers ? [change.name] : []),
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
  const unproven = plan.findings.filter(({ severity }) => severity === 'broken' || severity === 'unknown');
  const nowMs = clock.nowMs();
  if (before?.state === 'applied' && isFor(spec, before)) return { state: 'applied', connection: before, changed: false, unproven };
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
  return { state: 'applied', connection: next, changed: true, unproven };
}

/** Records are believed by their source: that of the bucket becomes what was made. S3 has just answered requests that name this account as the owner. */
async function followWay(state: StateStore, spec: ConnectionSpec): Promise<void> {
  const { bucket, source, bucketAccount } = spec;
  const way = { source, bucket_account: bucketAccount, ...defined({ topic_arn: desired(spec).subscription?.topicArn }) };
  await updateRecord(state, refs.bucket(bucket), (record) => record && changed(record, way));
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
function provenBy({ source }: ConnectionSpec, record: BucketRecord | undefined): BucketRecord | undefined {
  return record?.source === source && record.provenAtMs !== undefined ? record : undefined;
}

function waiting({ waitingFor }: Waiting): Applied {
  return { state: 'applying', waitingFor, retryAfterMs: RETRY_MS };
}

/** Whether the record is about exactly this spec. */
function isFor(spec: ConnectionSpec, connection: ConnectionRecord): boolean {
  return canonicalJson(spec) === canonicalJson(specOf(connection));
}

const CODES: ReadonlyMap<string, RequestErrorCode> = new Map([
  ['connect.overlap', 'connect.overlap'],
  ['connect.unknown-configuration', 'connect.unknown-configuration'],
]);

/** Throws what keeps the plan from being applied. */
export function refuse(plan: Plan, connection: ConnectionRecord | undefined, options: ApplyOptions): void {
  refuseState(plan.spec.bucket, connection, options);
  const blocking = plan.findings.find(({ blocks }) => blocks);
  if (blocking !== undefined) {
    const { code, what, why, fix } = blocking;
    throw new RequestError(CODES.get(code) ?? 'connect.blocked', `${what}: ${why}. ${inSentence(fix)}`, {
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
  const { token, isAgreed, asked = { bucket } } = options;
  if (token !== undefined && token !== plan.token) {
    const detail = `the plan ${token} of ${bucket} is outdated: review the current one with \`${addCommand(asked, 'show')}\``;
    throw new RequestError('connect.plan-outdated', detail, { token: plan.token });
  }
  const isContinued = connection?.state === 'applying' && connection.token === plan.token;
  if (plan.foreign.length === 0 || token !== undefined || isAgreed === true || isContinued) return;
  throw new RequestError(
    'connect.plan-needed',
    `the plan touches resources that are not Tally's (${plan.foreign.map(touchedText).join('; ')}). Review it with \`${addCommand(asked, 'show')}\`, then agree to it with \`${addCommand(asked, plan)}\``,
    { token: plan.token, foreign: plan.foreign.map(({ kind }) => kind).join(' '), plan: changesText(plan.changes) },
  );
}
