import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/registry/contract/contract.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { Actor } from '../../src/base/actor.ts';
import { type AuditRecord, auditRecordOf } from '../../src/base/audit.ts';
import { createAudited, createKeyUses, listAudit } from '../../src/identity/audit.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { keyActor, localActor } from '../support/identity/actors.ts';
import { createKeyWorld } from '../support/identity/keys.ts';
import { newKeySecret } from '../../src/identity/random-texts.ts';

const actor: Actor = { kind: 'local', user: 'alice', host: 'build-1' };
const contextOf = (requestId: string, signal = new AbortController().signal): Context => ({ actor, requestId, signal });
/** A killed process never comes back to where it was. */
const killed = (): Promise<never> => new Promise(() => {});

type Moment = 'before' | 'after';
interface Step {
  /** Which of the two records this is about; undefined: the act. */
  readonly at: 'intent' | 'act' | 'result';
  readonly moment: Moment;
}

interface Plan {
  /** Where the process is killed. */
  readonly kill: Step | undefined;
  /** Stores refuse a record, or take it and the answer is lost. */
  readonly intent: 'stored' | 'refused' | 'stored without an answer';
  readonly result: 'stored' | 'refused' | 'stored without an answer';
  readonly fails: boolean;
}

const storing = fc.constantFrom('stored', 'stored', 'refused', 'stored without an answer');
const plans = fc.record<Plan>({
  kill: fc.option(fc.record<Step>({ at: fc.constantFrom('intent', 'act', 'result'), moment: fc.constantFrom('before', 'after') }), {
    nil: undefined,
  }),
  intent: storing,
  result: storing,
  fails: fc.boolean(),
});

/** Runs the acts at the same time, each in its own process on one store, until they have ended or were killed. */
async function play(all: readonly Plan[]) {
  const audit = createMemoryAudit();
  const begun = new Set<string>();
  const ended = new Map<string, string>();
  const runs = all.map((plan, index) => {
    const id = `request-${index}`;
    const gone = Promise.withResolvers<void>();
    const passes = async (at: Step['at'], moment: Moment): Promise<void> => {
      if (plan.kill?.at !== at || plan.kill.moment !== moment) return;
      gone.resolve();
      await killed();
    };
    const append = async (record: AuditRecord): Promise<void> => {
      const at = record.outcome === 'intended' ? 'intent' : 'result';
      await passes(at, 'before');
      if (plan[at] === 'refused') throw new FaultError('index.blocked', 'the disk is full');
      await audit.append(record);
      await passes(at, 'after');
      if (plan[at] !== 'stored') throw new FaultError('index.unreachable', 'no answer within 15000 ms');
    };
    const audited = createAudited({ audit: { append }, clock: createFakeClock(), telemetry: createFakeTelemetry() });
    const act = audited('BucketRemove', async () => {
      begun.add(id);
      await passes('act', 'before');
      if (plan.fails) throw new FaultError('index.unreachable', 'gone');
      await passes('act', 'after');
    });
    const run = act({ params: { bucket: 'photos' } }, contextOf(id)).then(
      () => void ended.set(id, 'done'),
      (error: unknown) => void ended.set(id, (error as FaultError).code),
    );
    return Promise.race([run, gone.promise]);
  });
  await Promise.all(runs);
  return { audit, begun, ended };
}

describe('an audited act', () => {
  it('has exactly one intent once it has begun, and at most one result, whatever fails and whenever its process is killed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(plans, { minLength: 1, maxLength: 12 }), async (all) => {
        const { audit, begun, ended } = await play(all);
        for (const [index, plan] of all.entries()) {
          const id = `request-${index}`;
          const records = audit.records.filter(({ request_id }) => request_id === id);
          const outcomes = records.map(({ outcome }) => outcome);
          if (begun.has(id)) expect(outcomes[0]).toBe('intended');
          expect(outcomes.filter((outcome) => outcome === 'intended').length).toBeLessThanOrEqual(1);
          expect(outcomes.slice(1).length).toBeLessThanOrEqual(1);
          expect(outcomes.slice(1)).not.toContain('intended');
          // nothing is done without an intent, and the result is that of the act
          if (outcomes.includes('done') || outcomes.includes('failed')) expect(begun).toContain(id);
          if (outcomes.includes('failed')) expect(plan.fails).toBe(true);
          if (plan.intent !== 'stored' && ended.has(id)) expect([ended.get(id), begun.has(id)]).toEqual(['audit.unavailable', false]);
          // what nothing disturbed has both
          if (plan.kill === undefined && plan.intent === 'stored' && plan.result === 'stored') {
            expect([outcomes, ended.get(id)]).toEqual(
              plan.fails ? [['intended', 'failed'], 'index.unreachable'] : [['intended', 'done'], 'done'],
            );
          }
        }
        expect(new Set(audit.records.map(({ id }) => id)).size).toBe(audit.records.length);
      }),
      { numRuns: 300 },
    );
  });

  it('does not begin when its caller has left while the intent was stored, and stores that', async () => {
    const audit = createMemoryAudit();
    const leaving = new AbortController();
    const append = async (record: AuditRecord): Promise<void> => {
      await audit.append(record);
      if (record.outcome === 'intended') leaving.abort(new Error('the caller closed the connection'));
    };
    const audited = createAudited({ audit: { append }, clock: createFakeClock(), telemetry: createFakeTelemetry() });
    const act = audited('ReindexCancel', () => expect.fail('it began'));
    await expect(act({ params: { id: 'job-1' } }, contextOf('request-1', leaving.signal))).rejects.toThrow('closed the connection');
    expect(audit.records.map(({ outcome }) => outcome)).toEqual(['intended', 'failed']);
  });

  it('masks passwords and escapes control characters in its reason', async () => {
    const audit = createMemoryAudit();
    const audited = createAudited({ audit, clock: createFakeClock(), telemetry: createFakeTelemetry() });
    const act = audited('BucketRemove', () => Promise.reject(new Error('https://tally:secret@index \u001b[2J')));
    await expect(act({}, contextOf('request-1'))).rejects.toThrow();
    expect(audit.records[1]?.reason).toMatch(/^internal\.unexpected: .*\\u\{1b\}\[2J$/);
    expect(JSON.stringify(audit.records)).not.toContain('secret');
  });
});

it.each<[what: object, found: readonly string[]]>([
  [{}, ['2026-11-22T00:00', '2026-11-21T23:59', '2026-11-21T00:00', '2026-11-20T23:59']],
  [{ date: '2026/11/21' }, ['2026-11-21T23:59', '2026-11-21T00:00']],
  [{ date: '2026/11/23' }, []],
  [{ date: '2026/11/21', from: '2026-11-21T08:00:00Z' }, ['2026-11-21T23:59']],
  [{ date: '2026/11/21', to: '2026-11-21T08:00:00Z' }, ['2026-11-21T00:00']],
  [{ date: '2026/11/21', from: '2026-11-01', to: '2026-12-01' }, ['2026-11-21T23:59', '2026-11-21T00:00']],
  [{ date: '2026/11/21', from: '2026-11-22' }, []],
])('the audit of %j', async (query, found) => {
  const audit = createMemoryAudit();
  for (const time of ['2026-11-20T23:59:59.999Z', '2026-11-21T00:00:00Z', '2026-11-21T23:59:59.999Z', '2026-11-22T00:00:00Z']) {
    const facts = { event: 'Login', actor: localActor, requestId: time, outcome: 'done', atMs: Date.parse(time) } as const;
    await audit.append(auditRecordOf(facts, '1'));
  }
  const { items } = await listAudit(audit, { limit: 10, ...query });
  expect(items.map(({ eventtime }) => eventtime.slice(0, 16))).toEqual(found);
});

const signal = new AbortController().signal;

function world() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const audit = createMemoryAudit();
  return { clock, telemetry, audit, uses: createKeyUses({ audit, clock, telemetry }) };
}

const usesIn = (records: readonly AuditRecord[]) =>
  records.map(({ eventname, parameters, reason }) =>
    [eventname, parameters?.['operation'], parameters?.['count'], reason].join(' ').trim(),
  );

describe('the audit of uses', () => {
  it('has one record for each key, operation, address, refusal and five seconds, with the number of uses', async () => {
    const { clock, audit, uses, telemetry } = world();
    const [ci, export_] = [keyActor({ address: '10.0.0.7' }), keyActor({ keyId: 'k-export', keyName: 'export', address: '10.0.0.7' })];
    for (let use = 0; use < 3; use += 1) uses.used(ci, 'searchObjects');
    uses.used(ci, 'listJobs');
    uses.used({ ...ci, address: '10.0.0.8' }, 'searchObjects');
    uses.used(export_, 'searchObjects');
    for (let use = 0; use < 2; use += 1) uses.used(ci, 'searchObjects', 'authorization.denied');
    await clock.advance(4_999);
    uses.used(ci, 'searchObjects');
    await uses.storeEnded();
    expect(audit.records).toEqual([]);
    await clock.advance(1);
    uses.used(ci, 'searchObjects');
    await uses.storeEnded();
    expect(usesIn(audit.records).toSorted()).toEqual([
      'ApiKeyUse listJobs 1',
      'ApiKeyUse searchObjects 1',
      'ApiKeyUse searchObjects 1',
      'ApiKeyUse searchObjects 2 authorization.denied',
      'ApiKeyUse searchObjects 4',
    ]);
    const auth = { type: 'api_key', keyName: 'ci 2026', keyFingerprint: 'qk_abcd…wxyz' };
    expect(audit.records).toContainEqual(
      expect.objectContaining({
        eventtime: '2026-01-02T03:04:05.000Z',
        useridentity: { email: 'bob@example.com', userId: 'u-bob', sessionContext: { auth } },
        sourceipaddress: '10.0.0.7',
        outcome: 'done',
        parameters: { operation: 'searchObjects', count: 4 },
      }),
    );
    // each is a log line as well
    expect(telemetry.recorded('audited')).toHaveLength(5);
    expect(audit.records.map(({ outcome }) => outcome).toSorted()).toEqual(['done', 'done', 'done', 'done', 'failed']);
    await clock.advance(5_000);
    await uses.storeEnded();
    await uses.storeEnded();
    expect(audit.records).toHaveLength(6);
  });

  it('holds 10,000 windows, and closes the oldest when there are more', async () => {
    const { audit, uses, telemetry } = world();
    for (let use = 0; use < 10_003; use += 1) uses.used(keyActor({ keyId: `k-${use}` }), 'listJobs');
    await uses.storeEnded();
    expect(audit.records).toHaveLength(3);
    await uses.flush(signal);
    expect(audit.records).toHaveLength(10_003);
    expect(telemetry.recorded('requestFailed')).toEqual([]);
  });

  it('keeps only log lines of what a store that hangs has no room for', async () => {
    const clock = createFakeClock();
    const telemetry = createFakeTelemetry();
    const uses = createKeyUses({ audit: { append: () => new Promise(() => {}) }, clock, telemetry });
    uses.used(keyActor(), 'listJobs');
    await clock.advance(5_000);
    void uses.storeEnded();
    // 8 are on their way, 10,000 wait, and 10,000 windows are open
    for (let use = 0; use < 20_012; use += 1) uses.used(keyActor({ keyId: `k-${use}` }), 'listJobs');
    expect(telemetry.recorded('audited')).toHaveLength(8 + 5);
    const reason = '10000 records of ApiKeyUse wait already';
    expect(telemetry.recorded('requestFailed')).toEqual(
      Array.from({ length: 5 }, () => ['store an audit record', 'index.overloaded', reason]),
    );
    // nor does it hold up the end of the process; the log has everything then
    await uses.flush(AbortSignal.abort());
    expect(telemetry.recorded('audited')).toHaveLength(20_013);
  });
});

describe('credentials that fail', () => {
  it('are audited once for each address, reason and minute, with their number and without the secret', async () => {
    const { a, bob, clock, store } = await createKeyWorld();
    const { key, secret } = await a.create(bob);
    await a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob));
    const unknown = newKeySecret();
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await a.authenticate(unknown, '10.0.0.9')).toBe(undefined);
    await a.authenticate('nonsense', '10.0.0.9');
    await a.authenticate(secret, '10.0.0.9');
    await a.authenticate(secret, '10.0.0.10');
    await clock.advance(60_000);
    await a.authenticate(unknown, '10.0.0.9');
    await a.attempts.storeEnded();
    await a.attempts.flush(signal);
    const records = await store.audit.list({ event: 'AuthenticationFailed', limit: 100 });
    const shown = records.map((record) =>
      [record.sourceipaddress, record.useridentity.email, record.reason, record.parameters?.['count']].join(' | '),
    );
    expect(shown.toSorted()).toEqual([
      '10.0.0.10 | bob@example.com | API key revoked | 1',
      '10.0.0.9 | anonymous@registry | API key malformed | 1',
      '10.0.0.9 | anonymous@registry | API key unknown | 1',
      '10.0.0.9 | anonymous@registry | API key unknown | 3',
      '10.0.0.9 | bob@example.com | API key revoked | 1',
    ]);
    expect(records.every(({ outcome }) => outcome === 'failed')).toBe(true);
    const auth = { type: 'api_key', keyName: 'ci', keyFingerprint: key.fingerprint };
    expect(records).toContainEqual(
      expect.objectContaining({ useridentity: { email: 'bob@example.com', userId: 'u-bob', sessionContext: { auth } } }),
    );
    for (const text of [secret, unknown])
      expect(JSON.stringify([records, a.telemetry.recorded('audited')])).not.toContain(text.slice(3, 20));
  });

  it('Fix: at the login leave one record for each address, person, reason and minute', async () => {
    const { a, store } = await createKeyWorld();
    const reason = 'the issuer refused the login';
    const people = ['eve', 'mallory'].map((name) => ({ userId: `u-${name}`, email: `${name}@example.com`, emailVerified: true }));
    for (let attempt = 0; attempt < 300; attempt += 1)
      for (const who of [undefined, ...people]) a.attempts.loginFailed({ address: '10.0.0.9', reason, who });
    a.attempts.loginFailed({ address: '10.0.0.10', reason });
    await a.attempts.flush(signal);
    const records = await store.audit.list({ event: 'LoginFailed', limit: 100 });
    const shown = records.map(({ sourceipaddress, useridentity: { email, userId }, parameters, outcome }) =>
      [sourceipaddress, email, userId, parameters?.['count'], outcome].join(' | '),
    );
    expect(shown.toSorted()).toEqual([
      '10.0.0.10 | unknown |  | 1 | failed',
      '10.0.0.9 | eve@example.com | u-eve | 300 | failed',
      '10.0.0.9 | mallory@example.com | u-mallory | 300 | failed',
      '10.0.0.9 | unknown |  | 300 | failed',
    ]);
  });
});
