/** Applies a plan. One call is one pass of at most 20 s; a caller repeats it until it is applied. */
import type { BucketRecord } from '../../domain/bucket.ts';
import { inSentence } from '../../domain/commands.ts';
import { defined, omit } from '../../domain/defined.ts';
import { canonicalJson } from '../../domain/provisioning/canonical.ts';
import {
  connectionSchema,
  earlierAfter,
  madeSchema,
  subscriptionName,
  type ConnectionRecord,
} from '../../domain/provisioning/connection.ts';
import { applyCommand, planCommand, type WishRequest } from '../../domain/provisioning/planning/apply-command.ts';
import { touchedText } from '../../domain/provisioning/planning/foreign.ts';
import { changesText } from '../../domain/provisioning/planning/parts.ts';
import { planOf, type Change, type Plan } from '../../domain/provisioning/planning/plan.ts';
import type { Finding } from '../../domain/provisioning/checks/finding.ts';
import { wiringOf, type Wish, wishSchema } from '../../domain/provisioning/wiring.ts';
import { RequestError, type RequestErrorCode } from '../../domain/request-error.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, readRecord, updateRecord } from '../records/stored.ts';
import { openChangeGap, proveGap } from '../gaps/connection-gaps.ts';
import { RETRY_MS, type Seen, type UnderLease, type Waiting } from './loop.ts';
import type { Observe } from './observe.ts';
import { wishOfConnection } from './wishes.ts';
import type { WithPorts } from '../ports/ports.ts';
import { refs } from './refs.ts';

export interface ApplyOptions {
  /** The token of a plan that a person has agreed to. */
  readonly token?: string;
  /** Whatever it touches was agreed to before: it is restored. */
  readonly isAgreed?: boolean;
  /** The notification is to come back. */
  readonly isResuming?: boolean;
  readonly skipValidation?: boolean;
  /** The request, which may wish what is not stored: a refusal repeats its options in the commands that it names. */
  readonly asked?: WishRequest;
}

export type Applied =
  /**
   * `changed`: something was made since it was applied last. `unproven`: what keeps its events from being known to arrive, although
   * nothing is left to be made.
   */
  | { readonly state: 'applied'; readonly connection: ConnectionRecord; readonly changed: boolean; readonly unproven: readonly Finding[] }
  | { readonly state: 'applying'; readonly waitingFor: string; readonly retryAfterMs: number };

/**
 * Throws `connect.plan-needed`, `connect.plan-outdated`, `connect.paused`, `connect.removing`, the code of what blocks the plan,
 * `connect.changed-meanwhile`, and what AWS refuses.
 */
export type Apply = (wish: Wish, options: ApplyOptions, signal?: AbortSignal) => Promise<Applied>;

interface ApplyDependencies extends WithPorts<'state' | 'clock'> {
  readonly observe: Observe;
  readonly underLease: UnderLease;
}

/** What one look has found. */
interface Looked extends Seen {
  readonly plan: Plan;
  readonly connection: ConnectionRecord | undefined;
}

export function createApply({ state, clock, observe, underLease }: ApplyDependencies): Apply {
  return async function apply(wish, options, signal) {
    const { bucket } = wish;
    const look = async (): Promise<Looked> => {
      const observed = await observe(wish, signal);
      const plan = planOf(wish, observed);
      const connection = await readRecord(state, refs.connection(bucket), signal);
      return { observed, plan, connection, changes: plan.changes };
    };
    const check = ({ plan, connection }: Looked): void => refuse(plan, connection, options);
    const steps = { wish, look, check, begin, skipValidation: options.skipValidation === true };
    const done = await underLease({ bucket, wishes: [wish] }, signal, async (pass) => {
      const ended = await pass.run(steps);
      return 'waitingFor' in ended ? waiting(ended) : finish(ended);
    });
    return done === 'held' ? waiting({ waitingFor: 'another change of a connection' }) : done;
  };

  /** Stores what is about to be made, before it is made. */
  async function begin({ plan, connection: before }: Looked, change: Change): Promise<void> {
    // what was agreed to for one plan only is not stored
    const wish = wishSchema.parse(plan.wish);
    const nowMs = clock.nowMs();
    const isOthers = change.part === 'trail' || (change.part === 'subscription' && change.action === 'create');
    const next: ConnectionRecord = {
      ...(before && madeSchema.parse(before)),
      ...wish,
      earlier: earlierAfter(before, wish),
      state: 'applying',
      token: plan.token,
      made: madeWith(before, isOthers ? [change.name] : []),
      changedAtMs: nowMs,
    };
    await updateRecord(state, refs.connection(wish.bucket), () => next);
    await forgetArrivals(state, wish, nowMs);
  }

  /** The gap is stored first: a process that is killed in between opens it again. */
  async function finish({ plan, connection: before }: Looked): Promise<Applied> {
    const wish = wishSchema.parse(plan.wish);
    const isProven = provenBy(wish, await readRecord(state, refs.bucket(wish.bucket))) !== undefined;
    const unproven = plan.findings.filter(({ severity }) => severity === 'broken' || severity === 'unknown');
    const nowMs = clock.nowMs();
    if (before?.state === 'applied' && isFor(wish, before)) return { state: 'applied', connection: before, changed: false, unproven };
    // of what a person wired nothing is changed now
    if (before !== undefined || wish.byHand !== true) await openChangeGap({ state, clock }, wish, changeOf(isProven));
    const { token: _, pausedAtMs: __, ...kept } = before === undefined ? {} : madeSchema.partial().parse(before);
    const next: ConnectionRecord = {
      ...kept,
      ...wish,
      made: madeWith(before, await madeByOthers(wish)),
      earlier: earlierAfter(before, wish),
      state: 'applied',
      changedAtMs: nowMs,
    };
    await updateRecord(state, refs.connection(wish.bucket), () => next);
    // S3's test event may have come while the gap was being stored
    const proven = isProven ? undefined : provenBy(wish, await readRecord(state, refs.bucket(wish.bucket)));
    if (proven !== undefined) await proveGap({ state, clock }, proven);
    return { state: 'applied', connection: next, changed: true, unproven };
  }

  /** An apply for another bucket may have made the subscription to the named topic. That bucket may be removed first. */
  async function madeByOthers(wish: Wish): Promise<readonly string[]> {
    const { subscription } = wiringOf(wish);
    if (subscription === undefined || wish.topicArn === undefined) return [];
    const name = subscriptionName(subscription);
    const all = await listAllRecords(state, 'connection', connectionSchema);
    return all.some(({ made }) => made.includes(name)) ? [name] : [];
  }
}

/** What arrived before this change proves nothing about what is there after it. */
async function forgetArrivals(state: StateStore, wish: Wish, waySinceMs: number): Promise<void> {
  const topicArn = wiringOf(wish).subscription?.topicArn;
  await updateRecord(
    state,
    refs.bucket(wish.bucket),
    (record) =>
      record && {
        ...omit(record, 'provenAtMs', 'arrived'),
        waySinceMs,
        // by it events of this connection are known; the record of another source follows when its parts are made
        ...(record.source === wish.source && defined({ topicArn })),
      },
  );
}

function madeWith(before: ConnectionRecord | undefined, more: readonly string[]): string[] {
  return [...new Set([...(before?.made ?? []), ...more])];
}

/** The record, if events have proven this connection. */
function provenBy({ source }: Wish, record: BucketRecord | undefined): BucketRecord | undefined {
  return record?.source === source && record.provenAtMs !== undefined ? record : undefined;
}

function waiting({ waitingFor }: Waiting): Applied {
  return { state: 'applying', waitingFor, retryAfterMs: RETRY_MS };
}

/** Whether the record is about exactly this wish. */
function isFor(wish: Wish, connection: ConnectionRecord): boolean {
  return canonicalJson(wish) === canonicalJson(wishOfConnection(connection));
}

const CODES: ReadonlyMap<string, RequestErrorCode> = new Map([
  ['connect.overlap', 'connect.overlap'],
  ['connect.unknown-configuration', 'connect.unknown-configuration'],
]);

/** Throws what keeps the plan from being applied. */
export function refuse(plan: Plan, connection: ConnectionRecord | undefined, options: ApplyOptions): void {
  refuseState(plan.wish.bucket, connection, options);
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
  const { bucket } = plan.wish;
  const { token, isAgreed, asked = { bucket } } = options;
  if (token !== undefined && token !== plan.token) {
    const detail = `the plan ${token} of ${bucket} is outdated: look at the present one with \`${planCommand(asked)}\``;
    throw new RequestError('connect.plan-outdated', detail, { token: plan.token });
  }
  const isContinued = connection?.state === 'applying' && connection.token === plan.token;
  if (plan.foreign.length === 0 || token !== undefined || isAgreed === true || isContinued) return;
  throw new RequestError(
    'connect.plan-needed',
    `the plan touches what is not Tally's (${plan.foreign.map(touchedText).join('; ')}): look at it with \`${planCommand(asked)}\`, then \`${applyCommand(asked, plan)}\``,
    { token: plan.token, foreign: plan.foreign.map(({ kind }) => kind).join(' '), plan: changesText(plan.changes) },
  );
}

/** A change that a person made. Only an event proves what was made, and what is known to be broken stays so until the watch finds it in order. */
function changeOf(isProven: boolean): Parameters<typeof openChangeGap>[2] {
  return isProven ? { isUrgent: true } : { isUrgent: true, unproven: 'events' };
}
