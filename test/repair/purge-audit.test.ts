import { describe, expect, it } from 'vitest';
import { createPurgeAudit } from '../../src/repair/purges.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { newAuditRecord } from '../../src/store/stored.ts';

const DAY_MS = 86_400_000;
const actor = { kind: 'local', user: 'alice', host: 'build-1' } as const;

async function world(agesMs: readonly number[]) {
  const clock = createFakeClock({ autoAdvance: true });
  const telemetry = createFakeTelemetry();
  const audit = createMemoryAudit();
  const nowMs = clock.nowMs();
  for (const ageMs of agesMs) {
    await audit.append(newAuditRecord({ event: 'BucketRemove', actor, requestId: 'r', outcome: 'done', atMs: nowMs - ageMs }));
  }
  return { clock, telemetry, audit, agesMs: () => audit.records.map(({ eventtime }) => nowMs - Date.parse(eventtime)) };
}

describe('the purge of the audit', () => {
  it('deletes what is older than the retention in as many batches as it takes, and nothing younger', async () => {
    const { clock, telemetry, audit, agesMs } = await world([0, 399, 399.9, 401, 402, 403, 500, 900].map((days) => days * DAY_MS));
    await createPurgeAudit({ audit, clock, telemetry, retentionDays: 400 })(new AbortController().signal);
    expect(agesMs()).toEqual([0, 399 * DAY_MS, 399.9 * DAY_MS]);
    expect(telemetry.recorded('info')).toHaveLength(1);
    await createPurgeAudit({ audit, clock, telemetry, retentionDays: 400 })(new AbortController().signal);
    expect(telemetry.recorded('info')).toHaveLength(1);
  });

  it('ends a run at its bound, although there is more', async () => {
    const { clock, telemetry } = await world([]);
    let calls = 0;
    const audit = {
      purge: async () => {
        calls += 1;
        return 'more' as const;
      },
    };
    await createPurgeAudit({ audit, clock, telemetry, retentionDays: 400 })(new AbortController().signal);
    expect(calls).toBe(1_000);
  });
});
