/**
 * Applies a plan. One call is one pass of at most 20 s; a caller repeats it until it is applied. A pass reads AWS, makes a plan,
 * makes the next part, and so on until a plan has nothing to do:
 *
 *   read ──► plan ──► nothing to do: applied
 *     ▲        └──► next part ──┐
 *     └──────────────────────────┘
 *
 * So it does not matter where an earlier pass ended, or was killed: AWS itself is what has been done.
 */
import { inSentence } from '../../domain/commands.ts';
import { defined, omit } from '../../domain/defined.ts';
import { canonicalJson, fingerprintOf } from '../../domain/provisioning/canonical.ts';
import {
  connectionSchema,
  earlierAfter,
  madeSchema,
  madeSubscription,
  subscriptionName,
  type ConnectionPart,
  type ConnectionRecord,
} from '../../domain/provisioning/connection.ts';
import { applyCommand, planCommand, type WishRequest } from '../../domain/provisioning/planning/apply-command.ts';
import { changesText, partsAfter } from '../../domain/provisioning/planning/parts.ts';
import { planOf, type Change, type Plan } from '../../domain/provisioning/planning/plan.ts';
import type { Finding } from '../../domain/provisioning/checks/finding.ts';
import { existing } from '../../domain/provisioning/facts.ts';
import { markOf, REGISTRY_TAG, type Tags } from '../../domain/provisioning/names.ts';
import type { Observed } from '../../domain/provisioning/observed.ts';
import { wiringOf, type Wish, wishSchema } from '../../domain/provisioning/wiring.ts';
import { RequestError, type RequestErrorCode } from '../../domain/request-error.ts';
import type { Provisioner } from '../ports/provision.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../records/stored.ts';
import type { Lock, UnderLock } from './lock.ts';
import { openChangeGap } from '../gaps/connection-gaps.ts';
import type { createMakeParts } from './make.ts';
import { ownedBucket, type Observe } from './observe.ts';
import { createOutwait, type Outwait } from './patience.ts';
import { wishOfConnection } from './wishes.ts';
import type { WriteNotification } from './write-notification.ts';
import { recordsBucket } from '../../domain/provisioning/trail.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Below the 30 s after which the listener ends an operation. */
const PASS_MS = 20_000;
/** A plan has at most twelve parts. Each round makes at least one, or waits. */
const ROUNDS_MAX = 20;
/** The waits of a write of the notification, and its requests. */
const NOTIFICATION_MS = 10_000;
const RETRY_AFTER_MS = 2_000;

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
  readonly aws: Provisioner;
  readonly observe: Observe;
  readonly underLock: UnderLock;
  readonly makeParts: ReturnType<typeof createMakeParts>;
  readonly writeNotification: WriteNotification;
}

/** One pass, as its steps see it. */
interface Pass {
  readonly wish: Wish;
  readonly options: ApplyOptions;
  readonly lock: Lock;
  readonly outwait: Outwait;
  readonly endsMs: number;
  readonly signal: AbortSignal | undefined;
}

/** What one look has found. */
interface Seen {
  readonly observed: Observed;
  readonly plan: Plan;
  readonly connection: ConnectionRecord | undefined;
}

const ANOTHER = 'another change of a connection';

export function createApply({ state, clock, observe, underLock, makeParts, writeNotification }: ApplyDependencies): Apply {
  return async function apply(wish, options, signal) {
    const endsMs = clock.monotonicMs() + PASS_MS;
    const outwait = createOutwait(clock, { endsMs, signal });
    const done = await underLock(wish.bucket, { endsMs, signal }, (lock) => pass({ wish, options, lock, outwait, endsMs, signal }));
    return done === 'held' ? waiting(ANOTHER) : done;
  };

  async function look({ wish, signal }: Pass): Promise<Seen> {
    const observed = await observe(wish, signal);
    return { observed, plan: planOf(wish, observed), connection: await readRecord(state, refs.connection(wish.bucket), signal) };
  }

  async function pass(at: Pass): Promise<Applied> {
    for (let round = 0; round < ROUNDS_MAX && clock.monotonicMs() < at.endsMs; round += 1) {
      const seen = await look(at);
      const { plan, connection } = seen;
      refuse(plan, connection, at.options);
      const [change] = plan.changes;
      if (change === undefined) return finish(seen);
      const ended = await proceed(at, seen, change);
      if (typeof ended === 'object') return ended;
      if (ended === 'held') return waiting(ANOTHER);
    }
    return waiting('AWS to show what was changed');
  }

  /**
   * The record of the connection is stored under the shared lease first: a removal of another bucket counts by the records who needs
   * the parts that both share, so AWS is read again afterwards.
   */
  async function proceed(at: Pass, seen: Seen, change: Change): Promise<Applied | 'held' | 'made' | 'refused'> {
    if (change.part !== 'notification') return at.lock.shared(() => makeShared(at));
    if (isCounted(seen.plan.wish, seen.connection)) return attempt(at, change, await begin(seen));
    const begun = await at.lock.shared(() => begin(seen));
    return begun === 'held' ? begun : 'made';
  }

  /** Makes the parts that buckets share, one after the other, under the lease that they share. */
  async function makeShared(at: Pass): Promise<'made' | Applied> {
    let made: string | undefined;
    for (let round = 0; round < ROUNDS_MAX && clock.monotonicMs() < at.endsMs; round += 1) {
      const seen = await look(at);
      const { plan, connection, observed } = seen;
      const [change] = plan.changes;
      if (made !== undefined && isShownLate(made, plan, observed)) {
        // it was just made: each further write would be one more message or document while AWS only shows it late
        made = undefined;
        await clock.sleep(RETRY_AFTER_MS, at.signal);
        continue;
      }
      refuse(plan, connection, at.options);
      if (change === undefined || change.part === 'notification') return 'made';
      const begun = await begin(seen);
      await openGapsOfOthers({ state, clock }, plan, change);
      const ended = await attempt(at, change, begun);
      if (typeof ended === 'object') return ended;
      made = ended === 'made' ? partName(change) : undefined;
    }
    return waiting('AWS to show what was changed');
  }

  /** Stores what is about to be made, before it is made. */
  async function begin({ plan, observed: { notification }, connection: before }: Seen): Promise<ConnectionRecord> {
    const { changes, token } = plan;
    // what was agreed to for one plan only is not stored
    const wish = wishSchema.parse(plan.wish);
    const nowMs = clock.nowMs();
    const changesPolicy = changes.some(({ part }) => part === 'topic-policy');
    const next: ConnectionRecord = {
      ...(before && madeSchema.parse(before)),
      ...wish,
      earlier: earlierAfter(before, wish),
      state: 'applying',
      token,
      parts: partsAfter(before?.parts ?? [], changes),
      ...(before?.preImage === undefined && { preImage: notification.xml }),
      ...(changesPolicy && { policyChangedAtMs: nowMs }),
      changedAtMs: nowMs,
    };
    await updateRecord(state, refs.connection(wish.bucket), () => next);
    await forgetArrivals(state, wish, nowMs);
    return next;
  }

  /** Makes one part. `refused`: AWS may take it later, and what is there must be read first. Else the pass ends. */
  async function attempt(at: Pass, change: Change, { policyChangedAtMs }: ConnectionRecord): Promise<'made' | 'refused' | Applied> {
    await at.lock.keep();
    try {
      return (await makeNext(at, change)) ?? 'made';
    } catch (error) {
      return (await at.outwait(error, policyChangedAtMs)) ? 'refused' : waiting('AWS to take what it refuses now');
    }
  }

  /** Makes one part; defined if the pass ends with it. */
  async function makeNext(at: Pass, change: Change): Promise<Applied | undefined> {
    if (change.part !== 'notification') {
      await makeParts.make(at.wish, change, at.signal);
      return undefined;
    }
    // the rest of the pass is too short for it
    if (clock.monotonicMs() + NOTIFICATION_MS > at.endsMs) return waiting('the notification');
    const { before, after } = change;
    const written = await writeNotification(
      {
        bucket: ownedBucket(at.wish),
        before,
        after,
        id: markOf(at.wish),
        skipValidation: at.options.skipValidation === true,
      },
      at.signal,
    );
    return written === 'waiting' ? waiting('S3 to show the notification') : undefined;
  }

  /** The gap is stored first: a process that is killed in between opens it again. */
  async function finish({ plan, observed: { subscription }, connection: before }: Seen): Promise<Applied> {
    const wish = wishSchema.parse(plan.wish);
    const record = await readRecord(state, refs.bucket(wish.bucket));
    const isProven = record?.source === wish.source && record.provenAtMs !== undefined;
    const unproven = plan.findings.filter(({ severity }) => severity === 'broken' || severity === 'unknown');
    const nowMs = clock.nowMs();
    if (before?.state === 'applied' && isFor(wish, before)) return { state: 'applied', connection: before, changed: false, unproven };
    // of what a person wired nothing is changed now
    if (before !== undefined || wish.byHand !== true) await openChangeGap({ state, clock }, wish, changeOf(isProven));
    const { token: _, pausedAtMs: __, parts = [], ...kept } = before === undefined ? {} : madeSchema.partial().parse(before);
    const next: ConnectionRecord = {
      ...kept,
      ...wish,
      parts: [...(await withSubscription(state, wish, parts, existing(subscription)?.arn))],
      earlier: earlierAfter(before, wish),
      state: 'applied',
      changedAtMs: nowMs,
      lastCheckMs: nowMs,
    };
    await updateRecord(state, refs.connection(wish.bucket), () => next);
    return { state: 'applied', connection: next, changed: true, unproven };
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

/**
 * The parts with the subscription that SNS shows. Whether an apply for another bucket has made the one to a topic of others is
 * stored here as well, because that bucket may be removed first.
 */
async function withSubscription(
  state: StateStore,
  wish: Wish,
  parts: readonly ConnectionPart[],
  shown: string | undefined,
): Promise<readonly ConnectionPart[]> {
  const { subscription, topic } = wiringOf(wish);
  if (subscription === undefined || shown === undefined) return parts;
  const arn = subscriptionName(subscription);
  const isIt = (part: ConnectionPart): boolean => part.kind === 'subscription' && part.arn === arn;
  const known = parts.find(isIt);
  if (known === undefined && topic !== undefined && topic.isForeign !== true) return parts;
  const all = known === undefined ? await listAllRecords(state, 'connection', connectionSchema) : [{ parts: [...parts] }];
  const createdByUs = all.some((each) => madeSubscription(each, arn, shown));
  const fingerprint = known?.fingerprint ?? fingerprintOf(subscription);
  const part: ConnectionPart = { kind: 'subscription', arn, createdByUs, fingerprint, subscriptionArn: shown };
  return known === undefined ? [...parts, part] : parts.map((each) => (isIt(each) ? part : each));
}

function partName({ part, name }: Pick<Change, 'part' | 'name'>): string {
  return `${part} ${name}`;
}

/** Whether AWS does not show what was just made: it is missing, or it is a topic or rule that has no tag of an owner yet. */
function isShownLate(made: string, { changes: [change], wiring: { topic, rule } }: Plan, observed: Observed): boolean {
  if (change !== undefined && partName(change) === made) return true;
  const isUntagged = (part: { readonly tags?: Tags } | undefined): boolean => part !== undefined && part.tags?.[REGISTRY_TAG] === undefined;
  if (topic !== undefined && made === `topic ${topic.arn}`) return isUntagged(existing(observed.topic));
  return rule !== undefined && made === `rule ${rule.arn}` && isUntagged(existing(observed.rule));
}

function waiting(waitingFor: string): Applied {
  return { state: 'applying', waitingFor, retryAfterMs: RETRY_AFTER_MS };
}

/** Whether the record is about exactly this wish. */
function isFor(wish: Wish, connection: ConnectionRecord): boolean {
  return canonicalJson(wish) === canonicalJson(wishOfConnection(connection));
}

/** Whether a removal of another bucket knows by the record what this one needs. */
function isCounted(wish: Wish, connection: ConnectionRecord | undefined): boolean {
  return connection !== undefined && isFor(wishSchema.parse(wish), connection);
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
    `the plan touches what is not Tally's (${plan.foreign.join('; ')}): look at it with \`${planCommand(asked)}\`, then \`${applyCommand(asked, plan)}\``,
    { token: plan.token, foreign: plan.foreign.join('; '), plan: changesText(plan.changes) },
  );
}

/** A change that a person made. Only an event proves what was made, and what is known to be broken stays so until the watch finds it in order. */
function changeOf(isProven: boolean): Parameters<typeof openChangeGap>[2] {
  return isProven ? { isUrgent: true } : { isUrgent: true, unproven: 'events' };
}

/**
 * What buckets share may have been altered by others, so that the events of all of them were lost for a while. An apply for one of
 * them restores it for all, perhaps before the watch has looked at the others: so each of them gets a gap.
 */

/** Opens the gaps of the other buckets whose events the change lets pass again. */
async function openGapsOfOthers(
  dependencies: WithPorts<'state' | 'clock'>,
  plan: Pick<Plan, 'wish' | 'wiring'>,
  change: Change,
): Promise<void> {
  const isServed = servedBy(plan, change);
  if (isServed === undefined) return;
  const all = await listAllRecords(dependencies.state, 'connection', connectionSchema);
  for (const other of all)
    if (other.bucket !== plan.wish.bucket && other.state === 'applied' && isServed(wishOfConnection(other)))
      await openChangeGap(dependencies, other, { reason: 'what the bucket shares with others was altered, and is restored' });
}

/** Whether the change lets the events of a wish pass again. Undefined: it lets none pass that did not pass before. */
function servedBy({ wiring: { subscription } }: Pick<Plan, 'wiring'>, change: Change): ((other: Wish) => boolean) | undefined {
  if (restoresTopic(change))
    return (other) => {
      const theirs = wiringOf(other).subscription;
      return theirs !== undefined && theirs.topicArn === subscription?.topicArn && theirs.queueArn === subscription.queueArn;
    };
  if (change.part !== 'trail') return undefined;
  const { name, before, after } = change;
  return (other) => other.trailArn === name && !recordsBucket(before, other) && recordsBucket(after, other);
}

/** A topic or subscription that others need already, or one that has withheld events. */
function restoresTopic(change: Change): boolean {
  if (change.part === 'topic') return true;
  if (change.part !== 'subscription') return false;
  return change.action === 'create' || Object.keys(change.before).some((name) => name !== 'RedrivePolicy');
}
