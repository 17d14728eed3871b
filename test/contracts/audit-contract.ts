/** The contract of the audit that both stores must pass. */
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/base/actor.ts';
import { auditEvents, type AuditEvent, type AuditRecord } from '../../src/base/audit.ts';
import type { AuditQuery, AuditStore } from '../../src/store/store.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { keyActor, localActor, sessionActor } from '../support/identity/actors.ts';
import { contractWorld, DAY_MS, type OpenStore } from './world.ts';
import { newAuditRecord } from '../../src/store/stored.ts';

/** Two days before a month ends, so that records are in two months. */
const START_MS = Date.UTC(2026, 10, 29, 12);

const alice = localActor;
const bob = sessionActor();
const key = keyActor();
const actors = [alice, bob, key] as const;

function recordAt(atMs: number, actor: Actor = alice, event: AuditEvent = 'BucketRemove', more: object = {}): AuditRecord {
  return newAuditRecord({ event, actor, requestId: 'request-1', outcome: 'intended', atMs, parameters: { bucket: 'photos' }, ...more });
}

const idsOf = (records: readonly AuditRecord[]): readonly string[] => records.map(({ id }) => id);

/** Calls the contract's tests on stores that `open` creates. */
export function auditContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`the audit of ${name}`, () => {
    const world = contractWorld(open);
    let audit: AuditStore;
    beforeAll(() => {
      ({ audit } = world.store);
    });

    const list = async (query: Partial<AuditQuery> = {}): Promise<readonly AuditRecord[]> => {
      await world.refresh();
      return audit.list({ limit: 1_000, ...query });
    };

    /** Deletes everything, as far as the store deletes records by their age. */
    async function clear(): Promise<void> {
      await world.refresh();
      while ((await audit.purge(Date.UTC(2100, 0))) === 'more');
    }

    it('takes no record before the store is prepared, and leaves nothing behind', async () => {
      const other = await open();
      try {
        const refused = other.store.audit.append(recordAt(START_MS));
        await expect(refused).rejects.toMatchObject({ code: 'index.state-missing' });
        await other.store.setup.prepare();
        await other.refresh?.();
        expect(await other.store.audit.list({ limit: 1 })).toEqual([]);
        expect(await other.store.audit.purge(START_MS)).toBe('none');
        await other.store.audit.append(recordAt(START_MS));
        await other.refresh?.();
        expect(await other.store.audit.list({ limit: 2 })).toHaveLength(1);
      } finally {
        await other.dispose();
      }
    });

    it('returns a record as it was stored, and stores an id once', async () => {
      const parameters = { bucket: 'photos', ids: ['a', 'b'], nested: { dots: { 'a.b': 1 }, quote: '"\u202e\n' }, all: true, none: null };
      const record = recordAt(START_MS, key, 'DeadLettersDiscard', { outcome: 'failed', reason: 'x'.repeat(3_000), parameters });
      await audit.append(record);
      await audit.append({ ...record, outcome: 'done' });
      expect(await list()).toEqual([record]);
      await clear();
    });

    it('keeps parameters of different types under one name', async () => {
      const values = [1, 'text', { a: 1 }, ['a'], true];
      for (const [at, value] of values.entries()) {
        await audit.append(recordAt(START_MS + at, alice, 'BucketChange', { parameters: { value } }));
      }
      expect((await list()).map(({ parameters }) => parameters?.value).toReversed()).toEqual(values);
      await clear();
    });

    it('finds what a plain list in memory finds, the newest first, page by page', async () => {
      const memory = createMemoryAudit();
      const events = auditEvents.slice(0, 4);
      for (let n = 0; n < 40; n += 1) {
        const record = recordAt(START_MS + (n % 13) * (DAY_MS / 4), actors[n % 3], events[(n * 7) % 4]);
        for (const each of [memory, audit]) await each.append(record);
      }
      await world.refresh();
      const ids = idsOf(memory.records);
      const filters = fc.record(
        {
          fromMs: fc.integer({ min: START_MS - 1, max: START_MS + 4 * DAY_MS }),
          toMs: fc.oneof(fc.integer({ min: START_MS, max: START_MS + 4 * DAY_MS }), fc.constant(Date.UTC(9999, 0))),
          email: fc.constantFrom('bob@example.com', 'alice@build-1', 'bob@example'),
          event: fc.constantFrom(...events),
          key: fc.constantFrom('ci 2026', 'qk_abcd…wxyz', 'ci'),
          before: fc.constantFrom(...ids),
          limit: fc.integer({ min: 1, max: 50 }),
        },
        { requiredKeys: ['limit'] },
      );
      await fc.assert(
        fc.asyncProperty(filters, async (query) => {
          expect(idsOf(await audit.list(query))).toEqual(idsOf(await memory.list(query)));
        }),
        { numRuns: 60 },
      );
      await clear();
    });

    it('purges what is old, and nothing else', async () => {
      const old = [Date.UTC(2025, 0, 5), Date.UTC(2025, 0, 31, 23, 59, 59, 999), Date.UTC(2025, 1, 3)].map((atMs) => recordAt(atMs));
      const kept = recordAt(START_MS);
      for (const record of [...old, kept]) await audit.append(record);
      // exactly one month later, so that a month which has just ended counts as old
      let calls = 0;
      while ((await audit.purge(Date.UTC(2025, 1, 1))) === 'more') calls += 1;
      expect(calls).toBeGreaterThan(0);
      expect(idsOf(await list())).toEqual(idsOf([kept, old[2]!]));
      while ((await audit.purge(Date.UTC(2025, 2, 1))) === 'more');
      expect(idsOf(await list())).toEqual([kept.id]);
      await audit.append(recordAt(Date.UTC(2025, 0, 5)));
      expect(await list()).toHaveLength(2);
      await clear();
    });

    it('ends with the reason of an aborted signal', async () => {
      const aborted = AbortSignal.abort(new Error('enough'));
      await expect(audit.append(recordAt(START_MS), aborted)).rejects.toThrow('enough');
      await expect(audit.list({ limit: 1 }, aborted)).rejects.toThrow('enough');
      await expect(audit.purge(START_MS, aborted)).rejects.toThrow('enough');
    });
  });
}
