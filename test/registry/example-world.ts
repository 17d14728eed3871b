/** A control plane on stores in memory in which the examples of all rows succeed, and each act that is audited. */
import { markId } from '../../src/records/dirty.ts';
import { keyRecordOf } from '../../src/identity/api-key.rules.ts';
import { createStoredGrants } from '../../src/identity/grants/grants.ts';
import { newKeySecret } from '../../src/identity/random-texts.ts';
import { refs as identityRefs } from '../../src/identity/refs.ts';
import { appointmentNameOf, newAppointment } from '../../src/identity/user.rules.ts';
import { refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { markSeenAt } from '../support/fakes/gap-records.ts';
import { userRecord } from '../support/identity/actors.ts';
import { createControlWorld } from '../support/worlds/control.ts';
import { LETTERS, QUEUE } from '../support/worlds/operations.ts';

export const JOBS = {
  queued: 'job-0mk3x1a2b-0123456789ab',
  paused: 'job-0mk3x1a2b-0123456789ac',
  held: 'job-0mk3x1a2b-0123456789ae',
};
export const BOB = '0aB1cD2eF3gH4iJ5kL6mN7';
export const KEY = 'k0123456789abcdefghijAB';
const LETTER_ID = '5fea7756-0ea4-451a-a703-a558b933e274';

/** Buckets in several states; a queued, a paused and a held job; a gap; a dead letter; people and what they have. `owner`: of the key. */
export async function createExampleWorld(owner: { readonly userId: string; readonly userEmail: string }) {
  const audit = createMemoryAudit();
  const store = { ...createMemoryStore(), audit };
  const world = createControlWorld({ store, buckets: ['photos', 'videos', 'paused', 'posted'] });
  const { state, clock, connectBucket, deadLetters, queues, connections } = world;
  for (const bucket of ['photos', 'paused']) {
    await connectBucket.connect({ bucket }, 'test');
    await connections.apply({ bucket }, {});
    await removeRecord(state, markId(bucket));
  }
  await connections.pause('paused', new AbortController().signal);
  await connectBucket.connect({ bucket: 'posted', source: 'webhook' }, 'test');
  await queues.send(QUEUE, { body: 'no event', attributes: {} });
  const [message] = await queues.receive(QUEUE, { visibilityS: 60, max: 1 });
  await deadLetters.send(message!, { code: 'message.not-json', reason: 'Unexpected token' }, []);
  for (const letter of queues.messages(LETTERS)) Object.assign(letter, { messageId: LETTER_ID });
  const nowMs = clock.nowMs();
  const gap = markSeenAt(nowMs);
  await updateRecord(state, refs.gap(gap.id), () => gap);
  const job = { bucket: 'photos', prefix: '', mode: 'report', requestedBy: 'test', createdAtMs: nowMs, state: 'queued' } as const;
  await updateRecord(state, refs.job(JOBS.queued), () => ({ ...job, id: JOBS.queued }));
  await updateRecord(state, refs.job(JOBS.paused), () => ({ ...job, id: JOBS.paused, state: 'paused' as const }));
  await updateRecord(state, refs.job(JOBS.held), () => ({ ...job, id: JOBS.held, mode: 'apply' as const, state: 'done' as const }));
  const waiting = [{ prefix: '', count: 20, jobId: JOBS.held, order: 1, sinceMs: nowMs }];
  await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, waiting });
  await updateRecord(state, identityRefs.user(BOB), () => userRecord({ userId: BOB }));
  const dave = { email: 'dave@example.com' };
  await updateRecord(state, identityRefs.appointment(appointmentNameOf(dave)), () => newAppointment(dave, 'root@build-1', nowMs));
  const granted = { granted_by: 'root@build-1', created_at: new Date(nowMs).toISOString() };
  await createStoredGrants({ state, clock }).change(() => [
    { who: 'everyone', where: 'posted', ...granted },
    { who: 'group:analysts', where: 'photos/2026/', ...granted },
  ]);
  const key = keyRecordOf({ secret: newKeySecret(), name: 'ci', ...owner, scopes: ['read'], expiresInDays: 90, nowMs });
  await updateRecord(state, identityRefs.apiKey(KEY), () => ({ ...key, id: KEY }));
  const entry = { id: KEY, createdAtMs: nowMs, expiresAtMs: key.expiresAtMs };
  await updateRecord(state, identityRefs.userKeys(owner.userId), () => ({ userId: owner.userId, keys: [entry], revoked: [] }));
  return { ...world, store, audit };
}
