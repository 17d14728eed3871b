import { describe, expect, it } from 'vitest';
import { parseExport } from '../../src/domain/state-export.ts';
import { exportedUser } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

/** Files in memory. */
function createFiles() {
  const files = new Map<string, string>();
  const events: string[] = [];
  return {
    files,
    events,
    createFile(path: string) {
      if (files.has(path)) throw Object.assign(new Error('exists'), { code: 'EEXIST' });
      files.set(path, '');
      return {
        write: (text: string) => void files.set(path, (files.get(path) ?? '') + text),
        keep: () => void events.push('kept'),
        drop: () => void files.delete(path),
      };
    },
    readText: (path: string) => files.get(path),
  };
}

const OWN = { TALLY_INDEX_URL: 'sqlite:nowhere' };

describe('tally state export', () => {
  it('writes every page to a new file, between a header and the number of records', async () => {
    const files = createFiles();
    const world = createCliWorld(files);
    world.nextAnswers({ items: [exportedUser], next: 'page-2' });
    world.nextAnswers({ items: [{ ...exportedUser, id: 'user:2' }] });
    const { exitCode, stdout } = await world.run('state export out.jsonl');
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '2 records were written to out.jsonl.\n' });
    expect(world.asked).toEqual([
      ['exportState', { body: { limit: 1_000 } }],
      ['exportState', { body: { limit: 1_000, cursor: 'page-2' } }],
    ]);
    expect(parseExport(files.files.get('out.jsonl') ?? '')).toEqual({
      ok: true,
      records: [exportedUser, { ...exportedUser, id: 'user:2' }],
    });
    expect(files.events).toEqual(['kept']);
  });

  it('leaves no file behind when it fails, and replaces none', async () => {
    const files = createFiles();
    const world = createCliWorld(files);
    world.nextFails(new Error('the store is gone'));
    expect((await world.run('state export out.jsonl')).exitCode).toBe(1);
    expect([...files.files]).toEqual([]);
    files.files.set('out.jsonl', 'older');
    expect(await world.run('state export out.jsonl')).toMatchObject({
      exitCode: 64,
      stderr: expect.stringContaining('exists already'),
    });
    expect(files.files.get('out.jsonl')).toBe('older');
  });
});

describe('tally state import', () => {
  async function exported() {
    const files = createFiles();
    await createCliWorld(files).run('state export out.jsonl');
    return files;
  }

  it('reads the file into the store of the settings', async () => {
    const received: unknown[] = [];
    const openImport = async () => ({
      importState: async (records: readonly unknown[]) => received.push(...records),
      close: async () => void received.push('closed'),
    });
    const world = createCliWorld({ ...(await exported()), openImport });
    expect(await world.run('state import out.jsonl')).toMatchObject({ exitCode: 0, stdout: '1 records are in the store.\n' });
    expect(received).toEqual([exportedUser, 'closed']);
  });

  it.each([
    ['at a registry', { ...OWN, TALLY_REGISTRY_URL: 'http://127.0.0.1:1' }],
    ['without a store', {}],
  ])('is refused %s', async (_, env) => {
    const world = createCliWorld({ ...(await exported()), env });
    expect(await world.run('state import out.jsonl')).toMatchObject({
      exitCode: 64,
      stderr: expect.stringContaining('needs the store itself'),
    });
  });

  it('refuses a file that is not whole, is too large or is not there', async () => {
    const files = await exported();
    const text = files.files.get('out.jsonl') ?? '';
    files.files.set('cut.jsonl', text.slice(0, -20));
    expect(await createCliWorld(files).run('state import cut.jsonl')).toMatchObject({
      exitCode: 64,
      stderr: expect.stringContaining('cut off'),
    });
    expect(await createCliWorld(files).run('state import large')).toMatchObject({
      exitCode: 64,
      stderr: expect.stringContaining('256 MiB'),
    });
    const readText = () => {
      throw Object.assign(new Error('no'), { code: 'ENOENT' });
    };
    expect(await createCliWorld({ readText }).run('state import no')).toMatchObject({
      exitCode: 64,
      stderr: expect.stringContaining('ENOENT'),
    });
  });
});
