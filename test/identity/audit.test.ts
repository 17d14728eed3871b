import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/registry/contract/contract.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { Actor } from '../../src/base/actor.ts';
import { type AuditRecord, auditRecordOf } from '../../src/base/audit.ts';
import { createAudited, listAudit } from '../../src/identity/audit.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { localActor } from '../support/identity/actors.ts';

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
    // the next caller of the same operation is not concerned
    const next = createAudited({ audit, clock: createFakeClock(), telemetry: createFakeTelemetry() })(
      'ReindexCancel',
      async () => 'cancelled',
    );
    expect(await next({}, contextOf('request-2'))).toBe('cancelled');
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
