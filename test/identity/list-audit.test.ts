import { expect, it } from 'vitest';
import { auditRecordOf } from '../../src/base/audit.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { localActor } from '../support/identity/actors.ts';
import { listAudit } from '../../src/identity/audit.ts';

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
