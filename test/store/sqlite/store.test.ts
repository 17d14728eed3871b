import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import type { Readable } from 'node:stream';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSqliteConnection, openDatabase, sqliteFault, acquireServeLock } from '../../../src/store/sqlite/connection.ts';
import { firstAfterPrefix } from '../../../src/base/key-order.ts';
import { changesOf } from '../../../src/store/sqlite/changes.ts';
import { createPurge, createSqliteObjects } from '../../../src/store/sqlite/objects.ts';
import { createSqliteState, probeSqlite } from '../../../src/store/sqlite/state.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { queryWordsOf } from '../../../src/base/words.ts';
import { codeOf, keysOf, live as liveOf, tombstone as tombstoneOf } from '../../contracts/world.ts';
import { faultOf } from '../../../src/base/fault.ts';
import type { IndexWrite, Store } from '../../../src/store/store.ts';

type Child = ChildProcessByStdio<null, Readable, null>;

let folder: string;
let path: string;
let stores: Store[];
let children: Child[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
  path = join(folder, 'index.sqlite');
  stores = [];
  children = [];
});
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(children.map(ended));
  for (const store of stores) await store.close();
  await rm(folder, { recursive: true });
});

function open(): Store {
  const store = createSqliteStore(path);
  stores.push(store);
  return store;
}

async function prepared(): Promise<Store> {
  const store = open();
  await store.setup.prepare();
  await store.objects.createBucket('b');
  return store;
}

const live = (key: string, clock = 1): ObjectDocument => liveOf('b', key, { clock });
const tombstone = (key: string, clock = 1): ObjectDocument => tombstoneOf('b', key, { clock });
const writesOf = (documents: readonly ObjectDocument[]): IndexWrite[] => documents.map((document) => ({ document, equalClock: 'accept' }));
const numbered = (count: number): ObjectDocument[] => Array.from({ length: count }, (_, at) => live(`k${at}`));

function errorOf(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** How each write ended, or the fault of the request. */
async function written(objects: Pick<Store['objects'], 'write'>, keys: readonly string[]): Promise<string> {
  const answers = await objects.write(writesOf(keys.map((key) => live(key)))).catch((error: unknown) => [{ kind: faultOf(error).code }]);
  return [...new Set(answers.map(({ kind }) => kind))].join();
}

const keysFound = async (store: Store, prefix = ''): Promise<string[]> => keysOf(await store.objects.search({ prefix, limit: 1_000 }));

/** Another process with the modules of the adapter in scope; `script` may await. */
function run(script: string): Child {
  const adapters = new URL('../../../src/store/sqlite/', import.meta.url).href;
  const source = `
    import { createSqliteStore } from '${adapters}store.ts';
    import { acquireServeLock } from '${adapters}connection.ts';
    const path = ${JSON.stringify(path)};
    const store = createSqliteStore(path);
    ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

async function ended(child: Child): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

async function firstLine(child: Child): Promise<string> {
  for await (const line of createInterface(child.stdout)) return line;
  return '';
}

describe('the file of a SQLite store', () => {
  it('holds documents, words and state for the next process', async () => {
    const first = await prepared();
    await first.objects.write(writesOf([live('dir/report.pdf', 5), tombstone('gone', 6)]));
    const entry = await first.state.put({ id: 'bucket:b', kind: 'bucket', record: { bucket: 'b' } }, null);
    await first.close();
    const second = open();
    expect(await second.objects.getMany('b', ['dir/report.pdf', 'gone'])).toEqual([live('dir/report.pdf', 5), tombstone('gone', 6)]);
    expect(await second.objects.search({ words: queryWordsOf('dir rep')!, limit: 10 })).toEqual([live('dir/report.pdf', 5)]);
    expect(await second.objects.write(writesOf([live('dir/report.pdf', 4)]))).toEqual([{ kind: 'superseded' }]);
    expect(await second.state.get('bucket:b')).toEqual(entry);
  });

  it('is made, with its folder, by prepare and by nothing else', async () => {
    path = join(folder, 'not', 'there', 'index?mode=memory#100%.sqlite');
    const store = open();
    expect(await codeOf(store.state.get('x'))).toBe('index.state-missing');
    expect(await codeOf(store.objects.search({ limit: 1 }))).toBe('index.state-missing');
    expect(await codeOf(store.objects.createBucket('b'))).toBe('index.state-missing');
    expect(await codeOf(store.objects.probe())).toBe('index.state-missing');
    expect(existsSync(join(folder, 'not'))).toBe(false);
    await store.setup.prepare();
    expect(existsSync(path)).toBe(true);
    expect(await store.state.get('x')).toBeUndefined();
  });

  it.each([99, 1])('of another version is refused, and stays as it is: schema %i', async (schema) => {
    const code = 'index.other-version';
    await (await prepared()).objects.write(writesOf([live('kept')]));
    const database = new DatabaseSync(path);
    database.exec(`ALTER TABLE objects ADD COLUMN other TEXT; CREATE TABLE other (id TEXT) STRICT; PRAGMA user_version = ${schema}`);
    const contents = () => [
      database.prepare('PRAGMA user_version').get(),
      database.prepare('SELECT name, sql FROM sqlite_schema').all(),
      database.prepare('SELECT key, other FROM objects').all(),
    ];
    const before = contents();
    // a process that has the file open ends its work
    expect(await stores[0]?.state.get('x')).toBeUndefined();
    const restarted = open();
    for (const attempt of [restarted.setup.prepare(), restarted.state.get('x'), restarted.objects.write(writesOf([live('more')]))])
      expect(await attempt.then(() => undefined, faultOf)).toMatchObject({ code, reason: expect.stringContaining(`has schema ${schema}`) });
    expect(contents()).toEqual(before);
    database.close();
  });

  it('of another program is refused and left alone', async () => {
    const other = new DatabaseSync(path);
    other.exec('CREATE TABLE theirs (id TEXT)');
    const store = open();
    expect(await codeOf(store.state.get('x'))).toBe('index.damaged');
    expect(await codeOf(store.setup.prepare())).toBe('index.damaged');
    expect(other.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'theirs' }]);
    other.close();
  });

  it('that is no database is refused and left alone', async () => {
    const garbage = 'no database at all '.repeat(100);
    await writeFile(path, garbage);
    for (const refused of [open().state.get('x'), open().setup.prepare()]) expect(await codeOf(refused)).toBe('index.damaged');
    expect(await readFile(path, 'utf8')).toBe(garbage);
  });

  it('that cannot be opened or made is index.unreachable', async () => {
    path = folder;
    expect(await codeOf(open().state.get('x'))).toBe('index.unreachable');
    expect(await codeOf(open().setup.prepare())).toBe('index.unreachable');
    await writeFile(join(folder, 'plain'), '');
    path = join(folder, 'plain', 'index.sqlite');
    expect(await codeOf(open().setup.prepare())).toBe('index.unreachable');
  });

  it('is synced at each commit, and its log is written into it long after, from a cache that holds the pages of a bulk request', async () => {
    await prepared();
    const database = openDatabase(path, 'rw');
    const settingOf = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
    expect({ synchronous: settingOf('synchronous'), cache: settingOf('cache_size'), log: settingOf('wal_autocheckpoint') }).toEqual({
      synchronous: 2,
      cache: -16_384,
      log: 8_000,
    });
    database.close();
  });
});

describe('what SQLite answers', () => {
  it.each([
    { given: 'a full disk', sql: 'PRAGMA max_page_count = 1; CREATE TABLE filler (text TEXT)' },
    { given: 'a read-only file', sql: 'PRAGMA query_only = 1; CREATE TABLE filler (text TEXT)' },
  ])('on $given is index.blocked', async ({ sql }) => {
    await prepared();
    const database = new DatabaseSync(path);
    expect(
      faultOf(
        sqliteFault(
          errorOf(() => database.exec(sql)),
          path,
        ),
      ).code,
    ).toBe('index.blocked');
    database.close();
  });
});

describe('a process that is killed', () => {
  it('leaves every acknowledged write, and no half of a request', async () => {
    const store = await prepared();
    const child = run(`
      for (let batch = 1; ; batch += 1) {
        const writes = Array.from({ length: 50 }, (_, at) => ({
          document: { ...${JSON.stringify(live('k'))}, key: \`\${batch}/\${at}\`, clock: batch },
          equalClock: 'accept',
        }));
        await store.objects.write(writes);
        process.stdout.write(\`\${batch}\\n\`);
        await new Promise((resolve) => setImmediate(resolve));
      }`);
    let acknowledged = 0;
    for await (const line of createInterface(child.stdout)) {
      acknowledged = Number(line);
      if (acknowledged === 30) child.kill('SIGKILL');
    }
    expect(acknowledged).toBeGreaterThanOrEqual(30);
    for (let batch = 1; batch <= acknowledged; batch += 1) expect(await keysFound(store, `${batch}/`)).toHaveLength(50);
    expect([0, 50]).toContain((await keysFound(store, `${acknowledged + 1}/`)).length);
    expect(await store.objects.write(writesOf([live('after')]))).toEqual([{ kind: 'written' }]);
    checkIntegrity();
  });
});

describe('the lock of tally serve', () => {
  const hold = `process.stdout.write(typeof acquireServeLock(path) + '\\n'); setInterval(() => {}, 1_000);`;

  it('is held by one process until it is killed', async () => {
    const holder = run(hold);
    expect(await firstLine(holder)).toBe('object');
    expect(acquireServeLock(path)).toBe('held');
    holder.kill('SIGKILL');
    await ended(holder);
    const lock = acquireServeLock(path);
    expect(lock).not.toBe('held');
    const second = run(hold);
    expect(await firstLine(second)).toBe('string');
    if (lock !== 'held') lock.release();
  });

  it('is one in a process too, free again when released, and makes the folder that it needs', () => {
    path = join(folder, 'new', 'index.sqlite');
    const lock = acquireServeLock(path);
    expect(acquireServeLock(path)).toBe('held');
    expect(acquireServeLock(join(folder, 'other.sqlite'))).not.toBe('held');
    if (lock !== 'held') lock.release();
    expect(acquireServeLock(path)).not.toBe('held');
  });
});

describe('a bucket of more documents than one transaction deletes', () => {
  it('does not come back with its documents when its removal was interrupted', async () => {
    const store = await prepared();
    await store.objects.write(writesOf([...numbered(1_500), live('words')]));
    const stop = new AbortController();
    const removal = store.objects.removeBucket('b', stop.signal);
    stop.abort(new Error('stopping'));
    await expect(removal).rejects.toThrow('stopping');
    expect(await keysFound(store)).toEqual([]);
    await store.objects.createBucket('b');
    expect(await keysFound(store)).toEqual([]);
    expect(await store.objects.getMany('b', ['k0', 'k1499'])).toEqual([undefined, undefined]);
    checkIntegrity();
  });

  it('keeps what is written after it was created again while its removal still ran', async () => {
    const store = await prepared();
    await store.objects.write(writesOf(numbered(3_000)));
    const removal = store.objects.removeBucket('b');
    await store.objects.createBucket('b');
    await store.objects.write(writesOf([live('new')]));
    await removal;
    expect(await keysFound(store)).toEqual(['new']);
    checkIntegrity();
  });
});

describe('a purge', () => {
  it.each([
    ['a later tombstone', tombstone('a', 43)],
    ['a live object of the very same clock', live('a', 42)],
  ])('leaves %s that is written after the tombstones were read', async (_, later) => {
    const store = await prepared();
    await store.objects.write(writesOf([tombstone('a', 42), tombstone('b', 42)]));
    const connection = createSqliteConnection(path);
    const purge = createPurge(connection, {
      async tombstones() {
        await store.objects.write(writesOf([later]));
        return ['a', 'b'].map((key) => ({ key, clock: 42 }));
      },
    });
    expect(await purge('b', { deletedBeforeMs: Date.now(), upTo: {}, limit: 10 })).toBe(1);
    connection.close();
    expect(await store.objects.getMany('b', ['a', 'b'])).toEqual([later, undefined]);
  });
});

describe('the feed of a SQLite store', () => {
  const page = { prefix: '', limit: 100 };

  it('knows positions of a process that has ended, and none of what a copy that was put back lacks', async () => {
    const first = await prepared();
    await first.objects.write(writesOf([live('a')]));
    const early = await first.objects.position('b');
    await first.close();
    await copyFile(path, `${path}.copy`);

    const second = open();
    expect(await second.objects.changes('b', { ...page, after: early })).toMatchObject({ documents: [], more: false });
    await second.objects.write(writesOf([live('b')]));
    const late = await second.objects.position('b');
    await second.close();

    // in place, as cp does: the file keeps its inode
    await copyFile(`${path}.copy`, path);
    const third = open();
    for (let count = 0; count < 3; count += 1) {
      expect(await third.objects.changes('b', { ...page, after: late })).toBe('lost');
      expect(await third.objects.changes('b', { ...page, after: early })).not.toBe('lost');
      await third.objects.write(writesOf([live(`c${count}`)]));
    }
  });

  it('leaves to the next page what is written while it reads', async () => {
    const store = await prepared();
    await store.objects.write(writesOf([live('a')]));
    const connection = createSqliteConnection(path);
    const own = createSqliteConnection(path);
    const writer = createSqliteObjects(own, async () => undefined);
    const meanwhile: Promise<unknown>[] = [];
    const reads: Parameters<typeof changesOf>[0] = {
      use: (work) =>
        connection.use((session) =>
          work({
            ...session,
            statement(sql) {
              const statement = session.statement(sql);
              if (!sql.includes('document')) return statement;
              return Object.assign(Object.create(statement) as typeof statement, {
                all(...values: Parameters<typeof statement.all>) {
                  const rows = statement.all(...values);
                  meanwhile.push(writer.write(writesOf([live('meanwhile')])));
                  return rows;
                },
              });
            },
          }),
        ),
    };
    const read = await changesOf(reads, 'b', { ...page, after: {} });
    await Promise.all(meanwhile);
    const { position } = read as Exclude<typeof read, 'lost'>;
    expect(await store.objects.changes('b', { ...page, after: position })).toMatchObject({ documents: [{ key: 'meanwhile' }] });
    connection.close();
    own.close();
  });
});

describe('the words of a SQLite store', () => {
  it('stay those of the live documents, whatever is written', async () => {
    const store = await prepared();
    const keys = ['alpha beta', 'beta gamma', '東京 beta', 'ΟΔΟΣ'];
    const write = fc.record({ key: fc.constantFrom(...keys), clock: fc.integer({ min: 1, max: 9 }), deleted: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(write, { maxLength: 5 }), { maxLength: 5 }), async (batches) => {
        await store.objects.removeBucket('b');
        await store.objects.createBucket('b');
        for (const batch of batches) {
          await store.objects.write(writesOf(batch.map(({ key, clock, deleted }) => (deleted ? tombstone(key, clock) : live(key, clock)))));
        }
        const alive = (await store.objects.getMany('b', keys)).flatMap((one) => (one === undefined || one.deleted ? [] : [one.key]));
        for (const word of ['alpha', 'beta', 'gamma', '東京', 'οδος']) {
          const found = await store.objects.search({ words: [[{ whole: [word.replace('ς', 'σ')], prefix: word.slice(0, 1) }]], limit: 10 });
          const wanted = alive.filter((key) => key.toLowerCase().includes(word));
          expect(new Set(found.map(({ key }) => key)), word).toEqual(new Set(wanted));
        }
      }),
      { numRuns: 50 },
    );
    checkIntegrity();
  });

  it('may be a thousand in one query', async () => {
    const store = await prepared();
    const words = Array.from({ length: 1_000 }, (_, at) => `w${at}`);
    await store.objects.write(writesOf([live('w')]));
    expect(await store.objects.search({ words: [[{ whole: words, prefix: 'w' }]], limit: 10 })).toEqual([]);
  });
});

describe('the end of a prefix’s range', () => {
  const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

  it('parts the strings that have the prefix from those that come after', () => {
    const text = fc.string({ unit: 'binary', maxLength: 4 });
    fc.assert(
      fc.property(text, text, (prefix, other) => {
        const end = firstAfterPrefix(prefix);
        const inside = (key: string): boolean => compare(key, prefix) >= 0 && (end === undefined || compare(key, end) < 0);
        expect(inside(prefix + other)).toBe(true);
        expect(inside(other)).toBe(other.startsWith(prefix));
      }),
    );
  });
});

/** The file is sound, and the words are those of the live documents and of nothing else. */
function checkIntegrity(): void {
  const database = new DatabaseSync(path);
  try {
    expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
    database.exec("INSERT INTO object_words (object_words) VALUES ('integrity-check')");
    const ids = (sql: string): unknown[] =>
      database
        .prepare(sql)
        .all()
        .map(({ id }) => id);
    expect(ids('SELECT rowid AS id FROM object_words ORDER BY 1')).toEqual(ids('SELECT id FROM objects WHERE deleted = 0 ORDER BY 1'));
    // no index of the schema keeps a key in one row
    expect(ids('SELECT max(id) AS id FROM objects GROUP BY bucket, key HAVING count(*) > 1')).toEqual([]);
  } finally {
    database.close();
  }
}

describe('Fix: a disk without room', () => {
  it('is seen by the probe too, until there is room for a usual request again', async () => {
    const connection = createSqliteConnection(path);
    const objects = createSqliteObjects(connection, () => probeSqlite(connection, createSqliteState(connection)));
    const pragma = (sql: string): unknown => Object.values(connection.use(({ statement }) => statement(sql).get()) ?? {})[0];
    const many = Array.from({ length: 1_000 }, (_, at) => `k${at}`);
    connection.prepare();
    await objects.createBucket('b');
    await objects.probe();
    pragma(`PRAGMA max_page_count = ${Number(pragma('PRAGMA page_count'))}`);
    // a single record finds room in its page, a request does not
    expect(await written(objects, many)).toBe('index.blocked');
    for (let round = 0; round < 3; round += 1) expect(await codeOf(objects.probe())).toBe('index.blocked');
    pragma('PRAGMA max_page_count = 1000000');
    expect(await codeOf(objects.probe())).toBe('no fault');
    expect(await written(objects, many)).toBe('written');
    connection.close();
  });
});
