/** Takes away what Tally made in AWS for a bucket, or its notification for a moment. The record of the connection goes last. */
import type { ConnectionCheck } from '../records/bucket.ts';
import { omit } from '../base/defined.ts';
import { markId } from '../records/dirty.ts';
import {
  connectionSchema,
  earlierSpecs,
  specOf,
  subscriptionName,
  type ConnectionRecord,
  type ConnectionSpec,
} from './connection.rules.ts';
import { removingFinding } from './finding.rules.ts';
import type { Kept } from './plan.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { StateStore } from '../store/store.ts';
import { listAllEntries, listAllRecords, parseEntry, readRecord, removeRecord, updateRecord } from '../store/stored.ts';
import { refs } from './refs.ts';
import { requireConnection, type ChangeParts } from './apply.ts';
import { busy, type Pass } from './loop.ts';
import type { Remains } from './sources/look.ts';
import { notificationRemoval } from './sources/notification.ts';
import { desired, removal } from './sources/sources.ts';

/**
 * Takes away everything. Returns what stays because others have altered it; undefined if Tally made nothing for the bucket. Throws
 * `connect.removing` if a part is left after 20 s, and what AWS refuses: repeat it then.
 */
export async function removeParts(parts: ChangeParts, bucket: string, signal?: AbortSignal): Promise<readonly Kept[] | undefined> {
  const { state } = parts;
  const ref = refs.connection(bucket);
  const known = await readRecord(state, ref, signal);
  if (known === undefined) return undefined;
  return underPass(parts, known, signal, async (pass) => {
    const used = await usedByOthers(state, bucket);
    await noteRemoving(parts, bucket);
    const connection = await updateRecord(state, ref, (current) => current && { ...current, state: 'removing' as const });
    if (connection === undefined) return undefined;
    // of a bucket that a person has wired since, what was made before is known by its ids and tags
    const whole = omit(specOf(connection), 'byHand');
    const kept = await removeSpecs({ ...parts, pass }, [whole, ...earlierSpecs(connection)], { made: connection.made, used }, signal);
    await removeRecord(state, ref.id);
    return kept;
  });
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

/** Forgets what Tally made, and leaves it: no other bucket takes it away with its own parts. Throws `connect.busy`. */
export async function forgetParts(parts: ChangeParts, bucket: string, signal?: AbortSignal): Promise<void> {
  const { state } = parts;
  const ref = refs.connection(bucket);
  const known = await readRecord(state, ref, signal);
  if (known === undefined) return;
  await underPass(parts, known, signal, async () => {
    const left = new Set(namedBy(known));
    const sharing = (await listAllRecords(state, 'connection', connectionSchema)).filter(({ made }) => made.some((name) => left.has(name)));
    for (const other of sharing)
      await updateRecord(
        state,
        refs.connection(other.bucket),
        (current) => current && { ...current, made: current.made.filter((name) => !left.has(name)) },
      );
    await removeRecord(state, ref.id);
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
  return underPass(parts, known, signal, async (pass) => {
    const connection = await settledEarlier(state, bucket, signal);
    if (connection === undefined) return undefined;
    const spec = specOf(connection);
    const still = desired(spec);
    const kept = await removeSpecs(
      { ...parts, pass },
      earlierSpecs(connection),
      { made: connection.made, used: await usedByOthers(state, bucket), still },
      signal,
    );
    const { earlier: _, ...rest } = connection;
    // what others make in place of what is gone is theirs
    const present = new Set([still.subscription && subscriptionName(still.subscription), still.isTrailed && spec.trailArn]);
    await updateRecord(state, refs.connection(bucket), () => ({ ...rest, made: connection.made.filter((name) => present.has(name)) }));
    return kept;
  });
}

/**
 * Takes away exactly our notification, for the moment in which another one is made that would overlap with it. Throws
 * `connect.not-applied`, and `connect.blocked` for a source that needs no notification.
 */
export async function pause(parts: ChangeParts, bucket: string, signal: AbortSignal): Promise<ConnectionRecord> {
  const { state, clock, lookAt } = parts;
  const paused = await parts.underLease({ bucket, specs: [] }, signal, async (pass) => {
    const connection = await requireConnection(state, bucket, signal);
    const { source } = connection;
    if (source !== 'notification') {
      const detail = `${bucket} has the source ${source}, which needs no notification from Tally, so nothing can overlap with it`;
      throw new RequestError('connect.blocked', detail);
    }
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
    const ended = await pass.run({ look });
    if ('observed' in ended) return next;
    throw new RequestError('connect.busy', `the notifications of ${bucket} are being changed: repeat \`tally bucket pause ${bucket}\``);
  });
  if (paused === 'held') throw busy();
  return paused;
}

/** Takes the parts of specs away, as far as nothing else needs them. */
async function removeSpecs(
  { lookAt, pass }: ChangeParts & { readonly pass: Pass },
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
    const ended = await pass.run({ look });
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

/** The topics that were named, and the subscriptions to them. */
function namedBy(connection: ConnectionRecord): readonly string[] {
  return [connection, ...(connection.earlier ?? [])].flatMap(({ topicArn, queueArn }) =>
    topicArn === undefined ? [] : [topicArn, subscriptionName({ topicArn, queueArn })],
  );
}

/** Who needs what is shared must not change meanwhile. */
async function underPass<Result>(
  { underLease }: ChangeParts,
  connection: ConnectionRecord,
  signal: AbortSignal | undefined,
  work: (pass: Pass) => Promise<Result>,
): Promise<Result> {
  const done = await underLease({ bucket: connection.bucket, specs: [connection, ...earlierSpecs(connection)] }, signal, work);
  if (done === 'held') throw busy();
  return done;
}

/** The connection, if it has earlier parts that may go. */
async function settledEarlier(state: StateStore, bucket: string, signal?: AbortSignal): Promise<ConnectionRecord | undefined> {
  const connection = await readRecord(state, refs.connection(bucket), signal);
  if (connection?.state !== 'applied' || (connection.earlier ?? []).length === 0) return undefined;
  const mark = await readRecord(state, refs.gap(markId(bucket)), signal);
  return mark?.reasons.some(({ kind }) => kind === 'connection') === true ? undefined : connection;
}
