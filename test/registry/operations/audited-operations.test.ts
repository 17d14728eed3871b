import { describe, expect, it } from 'vitest';
import { rowsOfControlPlane, type AnyOperation, type ControlName } from '../../../src/registry/contract/contract.ts';
import type { AnyRequest } from '../../../src/registry/contract/row.ts';
import { nameOfActor, type Actor } from '../../../src/base/actor.ts';
import type { AuditEvent } from '../../../src/base/audit.ts';
import { sessionActor } from '../../support/identity/actors.ts';
import { BOB, createExampleWorld, JOBS, KEY } from '../example-world.ts';

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
  { operation: 'revokeApiKey', by: bob, event: 'ApiKeyRevoke', request: { params: { id: KEY } }, came: revokedKey },
  { operation: 'revokeAnyApiKey', event: 'ApiKeyRevoke', request: { params: { id: KEY } }, came: revokedKey },
  {
    operation: 'addBucket',
    event: 'BucketConnect',
    request: { body: { bucket: 'videos' } },
    came: { job_id: expect.stringMatching(/^job-/) },
  },
  { operation: 'addBucket', event: 'BucketChange', request: { body: { bucket: 'photos', enrich: 'head' } } },
  { operation: 'removeBucket', event: 'BucketRemove', request: { params: { bucket: 'photos' } } },
  { operation: 'changeNotification', event: 'BucketPause', request: { params: { bucket: 'photos' }, body: { paused: true } } },
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
  { operation: 'removeGrant', event: 'GrantRemove', request: { body: { who: 'everyone', where: 'posted' } } },
];

async function startWorld() {
  const { audit, telemetry, operations } = await createExampleWorld({ userId: bob.userId, userEmail: bob.email });
  const { signal } = new AbortController();
  const alice: Actor = { kind: 'local', user: 'alice', host: 'build-1', address: '127.0.0.1' };
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
