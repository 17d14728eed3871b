import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../src/base/audit.ts';
import { createKeyUses } from '../../src/identity/audit.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { keyActor } from '../support/identity/actors.ts';

const signal = new AbortController().signal;

function world() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const audit = createMemoryAudit();
  return { clock, telemetry, audit, uses: createKeyUses({ audit, clock, telemetry }) };
}

const shown = (records: readonly AuditRecord[]) =>
  records.map(({ eventname, parameters }) => [eventname, parameters?.['operation'], parameters?.['count']].join(' '));

describe('the audit of uses', () => {
  it('has one record for each key, operation, address and five seconds, with the number of uses', async () => {
    const { clock, audit, uses, telemetry } = world();
    const [ci, export_] = [keyActor({ address: '10.0.0.7' }), keyActor({ keyId: 'k-export', keyName: 'export', address: '10.0.0.7' })];
    for (let use = 0; use < 3; use += 1) uses.used(ci, 'searchObjects');
    uses.used(ci, 'listJobs');
    uses.used({ ...ci, address: '10.0.0.8' }, 'searchObjects');
    uses.used(export_, 'searchObjects');
    await clock.advance(4_999);
    uses.used(ci, 'searchObjects');
    await uses.storeEnded();
    expect(audit.records).toEqual([]);
    await clock.advance(1);
    uses.used(ci, 'searchObjects');
    await uses.storeEnded();
    expect(shown(audit.records).toSorted()).toEqual([
      'ApiKeyUse listJobs 1',
      'ApiKeyUse searchObjects 1',
      'ApiKeyUse searchObjects 1',
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
    expect(telemetry.recorded('audited')).toHaveLength(4);
    await clock.advance(5_000);
    await uses.storeEnded();
    await uses.storeEnded();
    expect(audit.records).toHaveLength(5);
  });

  it('Bug: has a record of what is refused to a key, apart from its uses', async () => {
    const { clock, audit, uses } = world();
    uses.used(keyActor(), 'searchObjects');
    for (let use = 0; use < 2; use += 1) uses.used(keyActor(), 'searchObjects', 'authorization.denied');
    await clock.advance(5_000);
    await uses.storeEnded();
    expect(audit.records.map(({ outcome, reason, parameters }) => [outcome, reason, parameters?.['count']])).toEqual([
      ['done', undefined, 1],
      ['failed', 'authorization.denied', 2],
    ]);
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
