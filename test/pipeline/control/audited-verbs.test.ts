import { createStoredGrants } from '../../../src/pipeline/access/policy.ts';
import { describe, expect, it } from 'vitest';
import { checkingRequests, rowsOfVerbs, type Context, type Operations, type VerbName } from '../../../src/api/contract.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { nameOfActor, type Actor } from '../../../src/domain/identity/actor.ts';
import { keyRecordOf } from '../../../src/domain/identity/api-key.ts';
import type { AuditEvent, AuditRecord } from '../../../src/domain/identity/audit.ts';
import { appointmentNameOf, newAppointment } from '../../../src/domain/identity/appointment.ts';
import { stateKinds } from '../../../src/domain/state-kind.ts';
import { createConnectBucket } from '../../../src/pipeline/buckets/connect.ts';
import { createVerbs } from '../../../src/pipeline/control/verbs.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { createDeadLetters } from '../../../src/pipeline/letters/dead-letters.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createFakeAws, provisioningOn } from '../../support/fakes/aws-parts.ts';
import { fakeDeadLetterQueues } from '../../support/fakes/dead-letter-queues.ts';
import { createMemoryAudit } from '../../support/fakes/memory-audit.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { sessionActor, userRecord } from '../../support/identity/actors.ts';
import { createFakeClock, createFakeQueues, createFakeStorage, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { newKeySecret } from '../../../src/pipeline/identity/random-texts.ts';

const LETTERS = 'http://queues/dead';
const QUEUE = 'http://queues/events';
const JOBS = { queued: 'job-0mk3x1a2b-0123456789ab', paused: 'job-0mk3x1a2b-0123456789ac', none: 'job-0mk3x1a2b-0123456789ad' };

const BOB = '0aB1cD2eF3gH4iJ5kL6mN7';

type Ask = (control: Operations, context: Context) => Promise<unknown>;

interface Act {
  readonly verb: VerbName;
  /** Default: alice, at the machine. */
  readonly by?: Actor;
  readonly event: AuditEvent;
  /** A request that succeeds in the world below. */
  readonly good: Ask;
  /** What its records name. */
  readonly names: object;
  /** What the record of its success names besides. */
  readonly came?: object;
}

const bob = sessionActor({ address: '127.0.0.1' });
const KEYS = { own: `k${'1'.repeat(22)}`, none: `k${'0'.repeat(22)}` };
const revokedKey = { name: 'ci', user_email: 'bob@example.com', fingerprint: expect.stringMatching(/^qk_/) };

/** It is audited as an act of the key that it revokes, and only if there is one: its own tests are those of its verb. */
const triedElsewhere: readonly VerbName[] = ['revokeApiKeyBySecret'];

const acts: readonly Act[] = [
  {
    verb: 'createApiKey',
    by: bob,
    event: 'ApiKeyCreate',
    good: (control, context) => control.createApiKey({ body: { name: 'ci' } }, context),
    names: { name: 'ci', expires_in_days: 90 },
    came: { id: expect.stringMatching(/^k/), fingerprint: expect.stringMatching(/^qk_/), scopes: ['read'] },
  },
  {
    verb: 'revokeApiKey',
    by: bob,
    event: 'ApiKeyRevoke',
    good: (control, context) => control.revokeApiKey({ params: { id: KEYS.own } }, context),
    names: { id: KEYS.own },
    came: revokedKey,
  },
  {
    verb: 'revokeAnyApiKey',
    event: 'ApiKeyRevoke',
    good: (control, context) => control.revokeAnyApiKey({ params: { id: KEYS.own } }, context),
    names: { id: KEYS.own },
    came: revokedKey,
  },
  {
    verb: 'addBucket',
    event: 'BucketConnect',
    good: (control, context) => control.addBucket({ body: { bucket: 'videos' } }, context),
    names: { bucket: 'videos' },
    came: { job_id: expect.stringMatching(/^job-/) },
  },
  {
    verb: 'addBucket',
    event: 'BucketChange',
    good: (control, context) => control.addBucket({ body: { bucket: 'photos', enrich: 'head' } }, context),
    names: { bucket: 'photos', enrich: 'head' },
  },
  {
    verb: 'changeBucket',
    event: 'BucketChange',
    good: (control, context) => control.changeBucket({ params: { bucket: 'photos' }, body: { source: 'eventbridge' } }, context),
    names: { bucket: 'photos', source: 'eventbridge' },
  },
  {
    verb: 'removeBucket',
    event: 'BucketRemove',
    good: (control, context) => control.removeBucket({ params: { bucket: 'photos' } }, context),
    names: { bucket: 'photos' },
  },
  {
    verb: 'applyBucket',
    event: 'BucketApply',
    good: (control, context) => control.applyBucket({ params: { bucket: 'photos' }, body: { enrich: 'head' } }, context),
    names: { bucket: 'photos', enrich: 'head' },
    came: { state: 'applied' },
  },
  {
    verb: 'cleanBucket',
    event: 'BucketChange',
    good: (control, context) => control.cleanBucket({ params: { bucket: 'applied' } }, context),
    names: { bucket: 'applied' },
  },
  {
    verb: 'pauseNotification',
    event: 'BucketPause',
    good: (control, context) => control.pauseNotification({ params: { bucket: 'applied' } }, context),
    names: { bucket: 'applied' },
  },
  {
    verb: 'resumeNotification',
    event: 'BucketResume',
    good: (control, context) => control.resumeNotification({ params: { bucket: 'paused' } }, context),
    names: { bucket: 'paused' },
  },
  {
    verb: 'startReindex',
    event: 'ReindexStart',
    good: (control, context) => control.startReindex({ params: { bucket: 'photos' }, body: { prefix: 'a/', allow_deletes: 7 } }, context),
    names: { bucket: 'photos', prefix: 'a/', allow_deletes: 7 },
    came: { job_id: expect.stringMatching(/^job-/) },
  },
  {
    verb: 'pauseJob',
    event: 'ReindexPause',
    good: (control, context) => control.pauseJob({ params: { id: JOBS.queued } }, context),
    names: { id: JOBS.queued },
  },
  {
    verb: 'resumeJob',
    event: 'ReindexResume',
    good: (control, context) => control.resumeJob({ params: { id: JOBS.paused }, body: { allow_deletes: 20 } }, context),
    names: { id: JOBS.paused, allow_deletes: 20 },
  },
  {
    verb: 'cancelJob',
    event: 'ReindexCancel',
    good: (control, context) => control.cancelJob({ params: { id: JOBS.queued } }, context),
    names: { id: JOBS.queued },
  },
  {
    verb: 'replayDeadLetters',
    event: 'DeadLettersReplay',
    good: (control, context) => control.replayDeadLetters({ body: { all: true } }, context),
    names: { all: true },
    came: { replayed: 1, remaining: 0 },
  },
  {
    verb: 'discardDeadLetters',
    event: 'DeadLettersDiscard',
    good: (control, context) => control.discardDeadLetters({ body: { all: true } }, context),
    names: { all: true },
    came: { discarded: 1, remaining: 0 },
  },
  {
    verb: 'disableUser',
    event: 'UserDisable',
    good: (control, context) => control.disableUser({ params: { id: BOB } }, context),
    names: { id: BOB },
    came: { email: 'bob@example.com' },
  },
  {
    verb: 'enableUser',
    event: 'UserEnable',
    good: (control, context) => control.enableUser({ params: { id: BOB } }, context),
    names: { id: BOB },
    came: { email: 'bob@example.com' },
  },
  {
    verb: 'exportState',
    event: 'StateExport',
    good: (control, context) => control.exportState({ body: { limit: 1 } }, context),
    names: { limit: 1 },
    came: { records: 1 },
  },
  {
    verb: 'appointAdmin',
    event: 'UserGrant',
    good: (control, context) => control.appointAdmin({ body: { email: 'carol@example.com' } }, context),
    names: { email: 'carol@example.com' },
  },
  {
    verb: 'withdrawAppointment',
    event: 'UserGrantWithdraw',
    good: (control, context) => control.withdrawAppointment({ body: { email: 'dave@example.com' } }, context),
    names: { email: 'dave@example.com' },
  },
  {
    verb: 'addGrant',
    event: 'GrantAdd',
    good: (control, context) => control.addGrant({ body: { who: 'everyone', where: 'photos' } }, context),
    names: { who: 'everyone', where: 'photos' },
  },
  {
    verb: 'removeGrant',
    event: 'GrantRemove',
    good: (control, context) => control.removeGrant({ body: { who: 'everyone', where: 'spare' } }, context),
    names: { who: 'everyone', where: 'spare' },
  },
];

/** Two buckets, of which `spare` is for the neighbour; a queued and a paused job; a dead letter. */
async function startWorld() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const audit = createMemoryAudit();
  let refuses: (record: AuditRecord) => boolean = () => false;
  const store = {
    ...createMemoryStore(),
    audit: {
      ...audit,
      async append(record: AuditRecord) {
        if (refuses(record)) throw new FaultError('index.blocked', 'the disk is full');
        await audit.append(record);
      },
    },
  };
  const { state, objects } = store;
  const storage = createFakeStorage(clock);
  for (const bucket of ['photos', 'spare', 'videos']) storage.createBucket(bucket);
  const gaps = createGapReports({ state, clock, telemetry });
  const connectBucket = createConnectBucket({ state, objects, storage, gaps, clock, telemetry });
  const queues = createFakeQueues(clock);
  const deadLetters = createDeadLetters({
    queues,
    state,
    gaps,
    clock,
    telemetry,
    queueWatch: fakeDeadLetterQueues({ queueUrl: LETTERS, of: [QUEUE] }),
    bucketQueueUrls: [QUEUE],
  });
  for (const bucket of ['photos', 'spare']) await connectBucket.connect({ bucket }, 'test');
  await queues.send(QUEUE, { body: 'no event', attributes: {} });
  const [message] = await queues.receive(QUEUE, { visibilityS: 60, max: 1 });
  await deadLetters.send(message!, { code: 'message.not-json', reason: 'Unexpected token' }, []);
  const job = { bucket: 'photos', prefix: '', mode: 'report', requestedBy: 'test', createdAtMs: clock.nowMs() } as const;
  await updateRecord(state, refs.job(JOBS.queued), () => ({ ...job, id: JOBS.queued, state: 'queued' as const }));
  await updateRecord(state, refs.job(JOBS.paused), () => ({
    ...job,
    id: JOBS.paused,
    state: 'paused' as const,
    pausedBecause: 'requested' as const,
  }));
  await updateRecord(state, refs.user(BOB), () => userRecord({ userId: BOB }));
  const dave = { email: 'dave@example.com' };
  await updateRecord(state, refs.appointment(appointmentNameOf(dave)), () => newAppointment(dave, 'root@build-1', clock.nowMs()));
  const grants = createStoredGrants({ state, clock });
  await grants.change(() => [
    { who: 'everyone', where: 'spare', grantedBy: 'root@build-1', createdAtMs: clock.nowMs(), source: 'command' },
  ]);
  const aws = createFakeAws();
  const provisioning = provisioningOn(aws, { state, storage, clock });
  for (const bucket of ['applied', 'paused']) {
    storage.createBucket(bucket);
    aws.parts.notifications.set(bucket, { entries: [], eventBridge: false });
    await connectBucket.connect({ bucket }, 'test');
    await provisioning.apply({ bucket }, {});
  }
  for (const bucket of ['applied', 'paused']) {
    await updateRecord(state, refs.gap(`gap:${bucket}:loss`), (gap) => gap && { ...gap, state: 'closed' as const });
  }
  await provisioning.pause('paused', new AbortController().signal);
  const control = checkingRequests(createVerbs({ store, storage, clock, telemetry, connectBucket, deadLetters, provisioning }));
  const address = '127.0.0.1';
  const alice: Actor = { kind: 'local', user: 'alice', host: 'build-1', address };
  const { signal } = new AbortController();
  const key = keyRecordOf({
    secret: newKeySecret(),
    name: 'ci',
    userId: bob.userId,
    userEmail: bob.email,
    scopes: ['read'],
    expiresInDays: 90,
    nowMs: clock.nowMs(),
  });
  await updateRecord(state, refs.apiKey(KEYS.own), () => ({ ...key, id: KEYS.own }));
  return {
    audit,
    telemetry,
    ask: (request: Ask, actor: Actor = alice) => request(control, { actor, signal }),
    refuse: (which: (record: AuditRecord) => boolean): void => {
      refuses = which;
    },
    /** Everything that an act can change. */
    everything: async (): Promise<unknown> => {
      const records = await Promise.all(stateKinds.map((kind) => state.list(kind, { limit: 1_000 })));
      const indices = await Promise.all(
        ['photos', 'spare', 'videos'].map((bucket) =>
          objects.probeBucket(bucket).then(
            () => true,
            () => false,
          ),
        ),
      );
      const messages = [LETTERS, QUEUE].map((url) => queues.messages(url).map(({ body }) => body));
      return { records, indices, messages };
    },
  };
}

const neighbour: Ask = (control, context) => control.removeBucket({ params: { bucket: 'spare' } }, context);
const outcomesOf = (records: readonly AuditRecord[]) => records.map(({ eventname, outcome }) => [eventname, outcome]);

describe('verbs of the control plane', () => {
  it('that change something are all tried below', () => {
    const changing = rowsOfVerbs.filter(({ method }) => method !== 'GET').map(({ operation }) => operation);
    expect(new Set([...acts.map(({ verb }) => verb), ...triedElsewhere])).toEqual(new Set(changing));
  });

  it('that only read are not audited, the audit itself among them', async () => {
    const { ask, audit } = await startWorld();
    await ask((control, context) => control.listBuckets({}, context));
    await ask((control, context) => control.listDeadLetters({}, context));
    await ask((control, context) => control.listAudit({}, context));
    expect(audit.records).toEqual([]);
  });
});

describe.each(acts.map((act) => [act.event, act.verb, act] as const))('%s of %s', (event, _, { by, good, names, came = {} }) => {
  it('has a record before it and one after it, by the same actor and request', async () => {
    const { ask, audit, telemetry } = await startWorld();
    await ask(good, by);
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
  });

  it('is not begun when its intent cannot be stored, while another act is', async () => {
    const { ask, audit, everything, refuse, telemetry } = await startWorld();
    refuse(({ eventname, parameters }) => eventname === event && parameters?.bucket !== 'spare');
    const before = await everything();
    const refusal = {
      code: 'audit.unavailable',
      reason: expect.stringMatching(`^the audit record of ${event} could not be stored.*disk is full`),
    };
    await expect(ask(good, by)).rejects.toMatchObject(refusal);
    expect(await everything()).toEqual(before);
    expect(telemetry.recorded('requestFailed')).toEqual([['store an audit record', 'index.blocked', 'the disk is full']]);
    await ask(neighbour);
    expect(outcomesOf(audit.records)).toEqual([
      ['BucketRemove', 'intended'],
      ['BucketRemove', 'done'],
    ]);
  });
});
