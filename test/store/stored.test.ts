import { beforeEach, describe, expect, it } from 'vitest';
import { unconnectedSchema, type UnconnectedRecord } from '../../src/records/bucket.ts';
import type { StateStore } from '../../src/store/store.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { racingState } from '../support/fakes/racing-state.ts';

const ref = refs.unconnected('one');
const counted = (current: UnconnectedRecord | undefined): UnconnectedRecord => ({
  bucket: 'one',
  count: (current?.count ?? 0) + 1,
  firstSeenMs: 1,
  lastSeenMs: 2,
});

describe('stored records', () => {
  let state: StateStore;
  beforeEach(() => {
    ({ state } = createMemoryStore());
  });

  it('are made, changed and removed', async () => {
    expect(await readRecord(state, ref)).toBeUndefined();
    await updateRecord(state, ref, counted);
    expect(await updateRecord(state, ref, counted)).toMatchObject({ count: 2 });
    expect(await readRecord(state, ref)).toMatchObject({ count: 2 });
    await removeRecord(state, ref.id);
    await removeRecord(state, ref.id);
    expect(await readRecord(state, ref)).toBeUndefined();
  });

  it('Fix: are refused by name if they could not be read again', async () => {
    await updateRecord(state, ref, counted);
    await expect(updateRecord(state, ref, (current) => ({ ...counted(current), lastSeenMs: Infinity }))).rejects.toMatchObject({
      code: 'internal.unexpected',
      reason: expect.stringMatching(/unconnected:one.*lastSeenMs/s) as string,
    });
    expect(await readRecord(state, ref)).toMatchObject({ count: 1, lastSeenMs: 2 });
  });

  it('are changed from what somebody else stored in between', async () => {
    const interfere = async () => void (await updateRecord(state, ref, counted));
    const raced = racingState(state, { times: 2, matches: () => true, interfere });
    expect(await updateRecord(raced, ref, counted)).toMatchObject({ count: 3 });
  });

  it('give up with record.contended when ten rounds are lost', async () => {
    const interfere = async () => void (await updateRecord(state, ref, counted));
    const raced = racingState(state, { times: Infinity, matches: () => true, interfere });
    await expect(updateRecord(raced, ref, counted)).rejects.toMatchObject({ code: 'record.contended' });
  });

  it.each([
    ['nothing', () => undefined],
    ['the very record', (current: UnconnectedRecord | undefined) => current],
  ])('are not written when the change is %s', async (_, change) => {
    await updateRecord(state, ref, counted);
    const before = await state.get(ref.id);
    await updateRecord(state, ref, change);
    expect(await state.get(ref.id)).toEqual(before);
  });

  it('keep fields that a newer version stored', async () => {
    await state.put({ id: ref.id, kind: 'unconnected', record: { ...counted(undefined), hue: 'new' } }, null);
    await updateRecord(state, ref, counted);
    expect((await state.get(ref.id))?.record).toMatchObject({ hue: 'new', count: 2 });
  });

  it('that cannot be read are record.newer', async () => {
    await state.put({ id: ref.id, kind: 'unconnected', record: { bucket: 7 } }, null);
    await expect(readRecord(state, ref)).rejects.toMatchObject({ code: 'record.newer' });
  });

  it('are all listed beyond one page, in id order', async () => {
    const names = Array.from({ length: 1_001 }, (_, index) => `bucket-${String(index).padStart(4, '0')}`);
    for (const name of names.toReversed()) {
      await state.put({ id: refs.unconnected(name).id, kind: 'unconnected', record: { ...counted(undefined), bucket: name } }, null);
    }
    expect((await listAllRecords(state, 'unconnected', unconnectedSchema)).map(({ bucket }) => bucket)).toEqual(names);
  });
});
