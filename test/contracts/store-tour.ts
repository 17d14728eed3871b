/** Each operation of a store once, for another way to the same store (signed, by a user with a role): the contract says what each does. */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { nameOf, type ObjectDocument } from '../../src/ordering/document.ts';
import { isLong } from '../support/breadth.ts';
import { awkwardKeys } from '../support/event-fixtures.ts';
import { auditRecord } from '../support/fakes/control.ts';
import { storeContract } from './store-contract.ts';
import type { OpenStore } from './world.ts';

const AT = '2026-01-02T03:04:05.678Z';
const AT_MS = Date.parse(AT);

/** In `npm run test:long` the whole contract too. */
export function storeTour(name: string, open: () => Promise<OpenStore>): void {
  it(`${name} does everything that is asked of it`, async () => {
    const opened = await open();
    try {
      const { objects, scan, maintenance, usage, state, audit, setup } = opened.store;
      await setup.prepare();
      const bucket = `tour-${randomBytes(6).toString('hex')}`;
      const other = `${bucket}-other`;
      for (const each of [bucket, other]) await objects.createBucket(each);
      await objects.probe();
      await objects.probeBucket(bucket);
      expect(await objects.identities([bucket])).toEqual([expect.any(String)]);

      const fields = { bucket, clock: 1_000, settled: false, source: 'native', indexed_at: AT } as const;
      const live = awkwardKeys.map((key): ObjectDocument => ({ ...fields, key, ...nameOf(key), deleted: false, size: 1, expires_at: AT }));
      const tombstone: ObjectDocument = { ...fields, key: 'gone', deleted: true, deleted_at: AT };
      const answers = await objects.write(
        [...live, tombstone].map((document) => ({ document, equalClock: document.deleted ? 'refuse' : 'accept' })),
      );
      expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['written']));
      expect(await objects.getMany(bucket, awkwardKeys)).toEqual(live);
      await opened.refresh?.();
      await scan.refresh(bucket);

      const keys = awkwardKeys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect((await objects.search({ bucket, limit: 1_000 })).map(({ key }) => key)).toEqual(keys);
      expect(await objects.count({ bucket }, 1_000)).toBe(keys.length);
      const within = [bucket, other].map((each) => ({ bucket: each, prefix: '' }));
      expect(await objects.search({ within, limit: 1_000 })).toHaveLength(keys.length);
      expect(await objects.latest(bucket, { prefix: '', limit: 1_000 })).toHaveLength(keys.length);
      expect(await objects.changes(bucket, { prefix: '', after: {}, limit: 1_000 })).toMatchObject({ more: false });
      expect((await scan.scan(bucket, { prefix: '', after: '', limit: 1_000 })).map(({ key }) => key)).toEqual(keys);
      expect(await scan.countLive(bucket, '')).toBe(keys.length);
      const sums = { bucket, by: ['extension', 'folder'], nowMs: AT_MS, limit: 1_000, timeLimitMs: 60_000 } as const;
      expect(await usage(sums)).toMatchObject({ objects: keys.length });
      const page = { after: '', limit: 1_000 };
      expect(await maintenance.unsettled(bucket, { ...page, clockBelow: 2_000 })).toHaveLength(keys.length + 1);
      expect(await maintenance.expiring(bucket, { ...page, beforeMs: AT_MS + 1 })).toHaveLength(keys.length);
      expect(await maintenance.purge(bucket, { deletedBeforeMs: AT_MS + 1, upTo: await objects.position(bucket), limit: 1_000 })).toBe(1);

      const id = `job:${bucket}`;
      const put = await state.put({ id, kind: 'job', record: { id, dueAtMs: AT_MS } }, null);
      if (put === 'conflict') throw new Error('a conflict at the first put');
      expect(await state.get(id)).toEqual(put);
      expect(await state.due({ nowMs: AT_MS, aheadMaxMs: 1_000, limit: 32 })).toEqual([id]);
      expect(await state.list('job', { limit: 10 })).toEqual([put]);
      expect(await state.count('job')).toBe(1);
      expect(await state.remove(id, put.version)).toBe('removed');
      await audit.append(auditRecord);
      await opened.refresh?.();
      expect(await audit.list({ limit: 10 })).toEqual([auditRecord]);
      await audit.purge(0);
      for (const each of [bucket, other]) await objects.removeBucket(each);
      expect(await objects.identities([bucket])).toEqual([undefined]);
    } finally {
      await opened.dispose();
    }
  });
  if (isLong) storeContract(name, open);
}
