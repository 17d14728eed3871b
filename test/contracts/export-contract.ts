/** The export and the import of state, on any store. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Context } from '../../src/api/contract.ts';
import { bucketRecordSchema } from '../../src/domain/bucket.ts';
import { keyRecordOf } from '../../src/domain/identity/api-key.ts';
import { appointmentNameOf, newAppointment } from '../../src/domain/identity/appointment.ts';
import { newSession } from '../../src/domain/identity/session.ts';
import { exportedKinds, type ExportedRecord } from '../../src/domain/state-export.ts';
import { gapSchema } from '../../src/domain/gaps/gap.ts';
import { createExportState } from '../../src/pipeline/control/export-state.ts';
import { createImportState } from '../../src/pipeline/control/import-state.ts';
import { createCheckKey } from '../../src/pipeline/identity/authenticate-key.ts';
import { createLiveKeys } from '../../src/pipeline/identity/live-keys.ts';
import { createUsers } from '../../src/pipeline/identity/users.ts';
import type { Store } from '../../src/pipeline/ports/store.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../src/pipeline/records/stored.ts';
import { localActor, userRecord } from '../support/identity/actors.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import type { OpenStore } from './world.ts';
import { newKeySecret, randomSecret } from '../../src/pipeline/identity/random-texts.ts';

const { signal } = new AbortController();
const context: Context = { actor: localActor, signal };
const USER = '0aB1cD2eF3gH4iJ5kL6mN7';

/** Calls the contract's tests on stores that `open` creates. */
export function exportContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`the export of state of ${name}`, () => {
    const opened: OpenStore[] = [];
    afterEach(async () => {
      for (const each of opened.splice(0)) await each.dispose();
    });

    async function newStore(): Promise<Store> {
      const each = await open();
      opened.push(each);
      return each.store;
    }

    const clock = createFakeClock();
    const secret = newKeySecret();

    /** A store with a record of each exported kind, and with others. */
    async function filled(): Promise<Store> {
      const store = await newStore();
      await store.setup.prepare();
      const { state } = store;
      const nowMs = clock.nowMs();
      const owner = { userId: USER, userEmail: 'bob@example.com', scopes: ['read'] as const };
      const key = keyRecordOf({ secret, name: 'ci', ...owner, expiresInDays: 90, nowMs });
      for (const bucket of ['photos', 'videos']) {
        await updateRecord(state, refs.bucket(bucket), () => ({ ...bucketOf(bucket, nowMs), lastComparedAtMs: nowMs }));
      }
      await updateRecord(state, refs.installation, () => ({ installation: 'tally-1', registry: '0'.repeat(32) }));
      await updateRecord(state, refs.user(USER), () => userRecord({ userId: USER }));
      await updateRecord(state, refs.appointment(appointmentNameOf({ sub: 's-1' })), () =>
        newAppointment({ sub: 's-1' }, 'alice@build-1', nowMs),
      );
      await updateRecord(state, refs.apiKey(key.id), () => key);
      const listed = [{ id: key.id, createdAtMs: key.createdAtMs, expiresAtMs: key.expiresAtMs }];
      await updateRecord(state, refs.userKeys(USER), () => ({ userId: USER, keys: listed, revoked: [] }));
      const { record } = newSession({ kind: 'client', secret: randomSecret(), user: { userId: USER, role: 'user' }, nowMs, days: 7 });
      await updateRecord(state, refs.session(record.id), () => record);
      return store;
    }

    async function exportOf({ state }: Store, limit = 1_000): Promise<readonly ExportedRecord[]> {
      const exportState = createExportState({ state });
      const records: ExportedRecord[] = [];
      for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
        const page = await exportState({ limit, ...(cursor !== undefined && { cursor }) }, signal);
        records.push(...page.items);
        cursor = page.next;
      }
      return records;
    }

    const importInto = (store: Store, records: readonly ExportedRecord[]): Promise<number> =>
      createImportState({ store, clock, telemetry: createFakeTelemetry() })(records, context);

    it('has the same records page by page and at once, and no session', async () => {
      const store = await filled();
      const all = await exportOf(store);
      expect(all.map(({ kind }) => kind)).toEqual(['bucket', 'bucket', 'installation', 'user', 'appointment', 'api-key', 'user-keys']);
      expect(await exportOf(store, 1)).toEqual(all);
      expect(await exportOf(store, 2)).toEqual(all);
      expect(JSON.stringify(all)).not.toContain(secret.slice(3, 20));
    });

    it('restores an empty store: keys are valid again, and every bucket is to be compared', async () => {
      const records = await exportOf(await filled());
      const target = await newStore();
      expect(await importInto(target, records)).toBe(records.length);
      // once more: all of it is there
      expect(await importInto(target, records)).toBe(0);
      await opened.at(-1)?.refresh?.();
      const { state } = target;
      const check = createCheckKey({
        state,
        liveKeys: createLiveKeys({ state, users: createUsers({ state, rules: { allowed: [{ kind: 'any' }], adminEmails: [] } }), clock }),
        clock,
        telemetry: createFakeTelemetry(),
        rule: {},
      });
      expect(await check(secret, signal)).toMatchObject({ kind: 'accepted' });
      expect((await readRecord(state, refs.bucket('photos')))?.lastComparedAtMs).toBeUndefined();
      const gaps = await listAllRecords(state, 'gap', gapSchema);
      expect(gaps.map(({ bucket, reason, state: is }) => `${bucket}: ${reason}, ${is}`).toSorted()).toEqual([
        'photos: never compared, open',
        'videos: never compared, open',
      ]);
      await target.objects.probeBucket('photos');
      const audited = (await target.audit.list({ limit: 10 })).filter(({ outcome }) => outcome === 'done');
      const written = audited.map(({ eventname, parameters }) => `${eventname}: ${String(parameters?.['written'])}`);
      expect(written.toSorted()).toEqual(['StateImport: 0', `StateImport: ${records.length}`]);
    });

    it('continues an import that was interrupted', async () => {
      const records = await exportOf(await filled());
      const target = await newStore();
      await importInto(target, records.slice(0, 3));
      expect(await importInto(target, records)).toBe(records.length - 3);
    });

    it('writes nothing into a store that has other records', async () => {
      const source = await filled();
      const records = await exportOf(source);
      await updateRecord(source.state, refs.user(USER), () => userRecord({ userId: USER, role: 'admin', roleSource: 'appointment' }));
      const before = await exportOf(source);
      await expect(importInto(source, records)).rejects.toMatchObject({
        code: 'state.conflict',
        message: expect.stringContaining('the store is not empty'),
      });
      expect(await exportOf(source)).toEqual(before);
    });

    it('refuses a record that is not what its id says, before anything is written', async () => {
      const records = await exportOf(await filled());
      const target = await newStore();
      await expect(importInto(target, [...records, { id: 'user:other', kind: 'user', record: { role: 'admin' } }])).rejects.toMatchObject({
        code: 'request.invalid',
        message: expect.stringContaining('user:other'),
      });
      const moved = records.map((each) => (each.kind === 'api-key' ? { ...each, id: 'api-key:k1' } : each));
      await expect(importInto(target, moved)).rejects.toMatchObject({ code: 'request.invalid' });
      await target.setup.prepare();
      for (const kind of exportedKinds) expect(await target.state.count(kind)).toBe(0);
    });
  });
}

function bucketOf(bucket: string, nowMs: number) {
  return bucketRecordSchema.parse({
    bucket,
    region: 'us-east-1',
    source: 'notification',
    versioning: { status: 'never', observedAtMs: nowMs },
    enrich: 'none',
    floor: 7,
    createdAtMs: nowMs,
    createdBy: 'alice@build-1',
    checkedAtMs: nowMs,
  });
}
