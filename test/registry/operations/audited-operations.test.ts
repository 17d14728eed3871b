import { markId } from '../../../src/records/dirty.ts';
import { createStoredGrants } from '../../../src/identity/grants/grants.ts';
import { describe, expect, it } from 'vitest';
import { rowsOfControlPlane, type AnyOperation, type ControlName } from '../../../src/registry/contract/contract.ts';
import type { AnyRequest } from '../../../src/registry/contract/row.ts';
import { nameOfActor, type Actor } from '../../../src/base/actor.ts';
import { keyRecordOf } from '../../../src/identity/api-key.rules.ts';
import type { AuditEvent } from '../../../src/base/audit.ts';
import { refs, removeRecord, updateRecord } from '../../../src/store/stored.ts';
import { createMemoryAudit } from '../../support/fakes/memory-audit.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { sessionActor, userRecord } from '../../support/identity/actors.ts';
import { createControlWorld } from '../../support/worlds/control.ts';
import { QUEUE } from '../../support/worlds/operations.ts';
import { newKeySecret } from '../../../src/identity/random-texts.ts';
import { appointmentNameOf, newAppointment } from '../../../src/identity/user.rules.ts';
import { refs as identityRefs } from '../../../src/identity/refs.ts';

const JOBS = {
  queued: 'job-0mk3x1a2b-0123456789ab',
  paused: 'job-0mk3x1a2b-0123456789ac',
  none: 'job-0mk3x1a2b-0123456789ad',
  held: 'job-0mk3x1a2b-0123456789ae',
};

const BOB = '0aB1cD2eF3gH4iJ5kL6mN7';

interface Act {
  readonly operation: ControlName;
  /** Default: alice, at the machine. */
  readonly by?: Actor;
  readonly event: AuditEvent;
  /** A request that succeeds in the world below. */
  readonly request: AnyRequest;
  /** What its records name. Default: all of the request. */
  readonly names?: object;
  /** What the record of its success names besides. */
  readonly came?: object;
}

const bob = sessionActor({ address: '127.0.0.1' });
const KEYS = { own: `k${'1'.repeat(22)}`, none: `k${'0'.repeat(22)}` };
const revokedKey = { name: 'ci', user_email: 'bob@example.com', fingerprint: expect.stringMatching(/^qk_/) };

/** It is audited as an act of the key that it revokes, and only if there is one: its own tests are those of its operation. */
const triedElsewhere: readonly ControlName[] = ['revokeApiKeyBySecret'];

const acts: readonly Act[] = [
  {
    operation: 'createApiKey',
    by: bob,
    event: 'ApiKeyCreate',
    request: { body: { name: 'ci' } },
    names: { name: 'ci', expires_in_days: 90 },
    came: { id: expect.stringMatching(/^k/), fingerprint: expect.stringMatching(/^qk_/), scopes: ['read'] },
  },
  { operation: 'revokeApiKey', by: bob, event: 'ApiKeyRevoke', request: { params: { id: KEYS.own } }, came: revokedKey },
  { operation: 'revokeAnyApiKey', event: 'ApiKeyRevoke', request: { params: { id: KEYS.own } }, came: revokedKey },
  {
    operation: 'addBucket',
    event: 'BucketConnect',
    request: { body: { bucket: 'videos' } },
    came: { job_id: expect.stringMatching(/^job-/) },
  },
  { operation: 'addBucket', event: 'BucketChange', request: { body: { bucket: 'photos', enrich: 'head' } } },
  { operation: 'removeBucket', event: 'BucketRemove', request: { params: { bucket: 'photos' } } },
  { operation: 'changeNotification', event: 'BucketPause', request: { params: { bucket: 'applied' }, body: { paused: true } } },
  { operation: 'changeNotification', event: 'BucketResume', request: { params: { bucket: 'paused' }, body: { paused: false } } },
  { operation: 'rotateToken', event: 'BucketTokenRotate', request: { params: { bucket: 'posted' } } },
  {
    operation: 'startReindex',
    event: 'ReindexStart',
    request: { params: { bucket: 'photos' }, body: { prefix: 'a/' } },
    came: { job_id: expect.stringMatching(/^job-/) },
  },
  { operation: 'changeJob', event: 'ReindexPause', request: { params: { id: JOBS.queued }, body: { state: 'paused' } } },
  { operation: 'changeJob', event: 'ReindexResume', request: { params: { id: JOBS.paused }, body: { state: 'running' } } },
  {
    operation: 'changeJob',
    event: 'ReindexAllow',
    request: { params: { id: JOBS.held }, body: { deletions: 'allowed' } },
    came: { job_id: expect.stringMatching(/^job-/) },
  },
  { operation: 'changeJob', event: 'ReindexDecline', request: { params: { id: JOBS.held }, body: { deletions: 'declined' } } },
  { operation: 'changeJob', event: 'ReindexCancel', request: { params: { id: JOBS.queued }, body: { state: 'cancelled' } } },
  { operation: 'replayDeadLetters', event: 'DeadLettersReplay', request: { body: { all: true } }, came: { replayed: 1, remaining: 0 } },
  { operation: 'discardDeadLetters', event: 'DeadLettersDiscard', request: { body: { all: true } }, came: { discarded: 1, remaining: 0 } },
  ...([true, false] as const).map((disabled) => ({
    operation: 'changeUser' as const,
    event: disabled ? ('UserDisable' as const) : ('UserEnable' as const),
    request: { params: { id: BOB }, body: { disabled } },
    came: { email: 'bob@example.com' },
  })),
  { operation: 'changeUser', event: 'UserGrant', request: { params: { id: 'carol@example.com' }, body: { role: 'admin' } } },
  { operation: 'changeUser', event: 'UserGrantWithdraw', request: { params: { id: 'dave@example.com' }, body: { role: 'user' } } },
  { operation: 'addGrant', event: 'GrantAdd', request: { body: { who: 'everyone', where: 'photos' } } },
  { operation: 'removeGrant', event: 'GrantRemove', request: { body: { who: 'everyone', where: 'spare' } } },
];

/** Buckets in several states; a queued, a paused and a held job; a dead letter; people and what they have. */
async function startWorld() {
  const audit = createMemoryAudit();
  const world = createControlWorld({
    store: { ...createMemoryStore(), audit },
    buckets: ['photos', 'videos', 'applied', 'paused', 'posted'],
  });
  const { state, clock, connectBucket, deadLetters, queues, connections, operations, telemetry } = world;
  for (const bucket of ['photos', 'applied', 'paused']) await connectBucket.connect({ bucket }, 'test');
  await connectBucket.connect({ bucket: 'posted', source: 'webhook' }, 'test');
  await queues.send(QUEUE, { body: 'no event', attributes: {} });
  const [message] = await queues.receive(QUEUE, { visibilityS: 60, max: 1 });
  await deadLetters.send(message!, { code: 'message.not-json', reason: 'Unexpected token' }, []);
  const job = { bucket: 'photos', prefix: '', mode: 'report', requestedBy: 'test', createdAtMs: clock.nowMs(), state: 'queued' } as const;
  await updateRecord(state, refs.job(JOBS.queued), () => ({ ...job, id: JOBS.queued }));
  await updateRecord(state, refs.job(JOBS.paused), () => ({ ...job, id: JOBS.paused, state: 'paused' as const }));
  await updateRecord(state, refs.job(JOBS.held), () => ({ ...job, id: JOBS.held, mode: 'apply' as const, state: 'done' as const }));
  const waiting = [{ prefix: '', count: 20, jobId: JOBS.held, order: 1, sinceMs: clock.nowMs() }];
  await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, waiting });
  await updateRecord(state, identityRefs.user(BOB), () => userRecord({ userId: BOB }));
  const dave = { email: 'dave@example.com' };
  await updateRecord(state, identityRefs.appointment(appointmentNameOf(dave)), () => newAppointment(dave, 'root@build-1', clock.nowMs()));
  const grant = { who: 'everyone', where: 'spare', granted_by: 'root@build-1', created_at: new Date(clock.nowMs()).toISOString() } as const;
  await createStoredGrants({ state, clock }).change(() => [grant]);
  for (const bucket of ['applied', 'paused']) {
    await connections.apply({ bucket }, {});
    await removeRecord(state, markId(bucket));
  }
  const { signal } = new AbortController();
  await connections.pause('paused', signal);
  const alice: Actor = { kind: 'local', user: 'alice', host: 'build-1', address: '127.0.0.1' };
  const owner = { userId: bob.userId, userEmail: bob.email, scopes: ['read'] } as const;
  const key = keyRecordOf({ secret: newKeySecret(), name: 'ci', expiresInDays: 90, nowMs: clock.nowMs(), ...owner });
  await updateRecord(state, identityRefs.apiKey(KEYS.own), () => ({ ...key, id: KEYS.own }));
  return {
    audit,
    telemetry,
    ask: (operation: ControlName, request: AnyRequest = {}, actor: Actor = alice): Promise<unknown> =>
      (operations[operation] as AnyOperation)(request, { actor, signal }),
  };
}

// that nothing is done whose intent is not stored: identity/audit.test.ts
describe('operations of the control plane', () => {
  it('that change something are all tried below', () => {
    const changing = rowsOfControlPlane.filter(({ method }) => method !== 'GET').map(({ operation }) => operation);
    expect(new Set([...acts.map(({ operation }) => operation), ...triedElsewhere])).toEqual(new Set(changing));
  });

  it('that only read are not audited, the audit itself among them', async () => {
    const { ask, audit } = await startWorld();
    for (const operation of ['listBuckets', 'listDeadLetters', 'listAudit'] as const) await ask(operation);
    expect(audit.records).toEqual([]);
  });
});

it.each(acts.map((act) => [act.event, act.operation, act] as const))(
  '%s of %s has a record before it and one after it, by the same actor and request',
  async (event, operation, { by, request, came = {}, names = Object.assign({}, request.params, request.body) }) => {
    const { ask, audit, telemetry } = await startWorld();
    await ask(operation, request, by);
    const facts = {
      eventname: event,
      useridentity: {
        email: by === undefined ? 'alice@build-1' : nameOfActor(by),
        sessionContext: { auth: { type: by?.kind ?? 'local' } },
      },
      sourceipaddress: '127.0.0.1',
      date: '2026/01/02',
    };
    expect(audit.records).toMatchObject([
      { ...facts, outcome: 'intended', parameters: names },
      { ...facts, outcome: 'done', parameters: { ...names, ...came } },
    ]);
    expect(new Set(audit.records.map(({ request_id }) => request_id)).size).toBe(1);
    // each is a log line as well
    expect(telemetry.recorded('audited').flat()).toEqual(audit.records);
  },
);
