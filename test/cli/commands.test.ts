import { describe, expect, it } from 'vitest';
import { bucketAnswer, explanation, job, nastyKey, objectDocument, planAnswer, usage } from '../support/fakes/control.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createCliWorld, unsafeIn } from './world.ts';

const SAFE_KEY = 'a b/ü\\u{1b}[2J\\u{202e}\\u{a}"\\.jpg';

describe('each command that is more than a row', () => {
  it.each([
    ['search', { items: [objectDocument], next: 'page-2' }],
    ['du photos', usage],
    ['explain photos cat.jpg', explanation],
    ['bucket add photos', { ...bucketAnswer, changed: true }],
    ['bucket add photos --plan', planAnswer],
    ['reindex photos', job],
  ])('prints what the HTTP API answers with --json, and nothing else: %s', async (command, answer) => {
    const world = createCliWorld();
    const { exitCode, stdout, stderr } = await world.run(`${command} --json`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(answer);
    expect(unsafeIn(stdout)).toEqual([]);
    expect(world.opened()).toBe(1);
  });

  it.each(['search', 'du photos', 'explain photos cat.jpg', 'bucket add photos', 'reindex photos'])(
    'prints lines of at most 80 columns that a terminal may be trusted with: %s',
    async (command) => {
      const { exitCode, stdout } = await createCliWorld().run(command);
      expect(exitCode).toBe(0);
      expect(unsafeIn(stdout)).toEqual([]);
      expect(stdout.split('\n').filter((line) => line.length > 80 && line !== explanation.sentence)).toEqual([]);
    },
  );
});

describe('tally du', () => {
  it('asks for a bucket by folder, for all by bucket, or for what it is told', async () => {
    const world = createCliWorld();
    await world.run('du photos 2026/ --by class --by age --query size>1G --limit 5');
    await world.run('du photos');
    await world.run('du');
    expect(world.asked.map(([, { query }]) => query)).toEqual([
      { bucket: 'photos', prefix: '2026/', by: ['class', 'age'], query: 'size>1G', limit: 5 },
      { bucket: 'photos', by: ['folder'], limit: 100 },
      { by: ['bucket'], limit: 100 },
    ]);
  });

  it('prints objects and bytes of each group, what the others have, and the sum', async () => {
    const world = createCliWorld();
    const { stdout, stderr } = await world.run('du photos');
    expect(stdout).toBe(`OBJECTS  SIZE   NAME\n1        12 B   .\n1,234    2 GiB  ${SAFE_KEY}/\n1        0 B    (others)\n`);
    expect(stderr).toBe('1,236 objects match, 2 GiB in all.\n');
    world.nextAnswers({ objects: 1, bytes: 2, by: (['class', 'size'] as const).map((by) => ({ by, groups: [{ objects: 1, bytes: 2 }] })) });
    expect((await world.run('du --by class --by size')).stdout).toBe(
      'BY     OBJECTS  SIZE  NAME\nclass  1        2 B   (none)\nsize   1        2 B   (none)\n',
    );
    world.nextAnswers({ objects: 0, bytes: 0, by: [] });
    expect(await world.run('du')).toEqual({ exitCode: 0, stdout: '', stderr: 'No object in the index matches.\n' });
  });
});

describe('tally search', () => {
  it('prints an aligned table with hostile keys escaped, and how to go on beside it', async () => {
    const { stdout, stderr } = await createCliWorld().run('search');
    expect(stdout).toBe(`BUCKET  SIZE  AGE  KEY\nphotos  12 B  2 h  ${SAFE_KEY}\n`);
    expect(stderr).toBe('There is more. Repeat the command with --cursor page-2\n');
  });

  it('sends its words and its filters, sizes as people write them', async () => {
    const world = createCliWorld();
    const place = '--bucket photos --prefix 2026/ --key k --extension jpg --cursor page-2';
    const more = '--contains abc --match *.jpg --size-min 1K --size-max 1GB --modified-after 2026-01-01 --content-type image/*';
    const rest = '--storage-class GLACIER --tag a=b --tag c=d --meta e=f --sort size --order desc --total --tz Europe/Berlin --query';
    await world.run(`search annual report ${place} ${more} ${rest}`, 'ext:pdf -"draft"');
    const query = {
      bucket: 'photos',
      prefix: '2026/',
      key: 'k',
      extension: 'jpg',
      cursor: 'page-2',
      query: 'annual report ext:pdf -"draft"',
      tz: 'Europe/Berlin',
      contains: 'abc',
      match: '*.jpg',
      size_min: 1_024,
      size_max: 1_000_000_000,
      modified_after: '2026-01-01',
      content_type: 'image/*',
      storage_class: 'GLACIER',
      tag: ['a=b', 'c=d'],
      meta: ['e=f'],
      sort: 'size',
      order: 'desc',
      total: 'true',
      limit: 100,
    };
    expect(world.asked).toEqual([['searchObjects', { query }]]);
    await world.run('search --deleted --deleted-after 2026-11-20 --deleted-before 2026-11-21');
    expect(world.asked.at(-1)).toEqual([
      'searchObjects',
      { query: { deleted: 'true', deleted_after: '2026-11-20', deleted_before: '2026-11-21', limit: 100 } },
    ]);
    expect(await world.run('search --size-min big')).toMatchObject({ exitCode: 64, stderr: expect.stringContaining('64K, 1.5G') });
  });

  it('writes CSV that a spreadsheet and a terminal may be trusted with', async () => {
    const keys = ['plain', '=1+1', '+a', '-a', '@a', '\uff1d1+1', 'a,"b"', nastyKey];
    const items = keys.map((key) => ({ ...objectDocument, key }));
    const world = createCliWorld();
    world.nextAnswers({ items });
    const { stdout } = await world.run('search --csv');
    expect(unsafeIn(stdout)).toEqual([]);
    expect(stdout.split('\n').map((line) => line.split(',12,')[0])).toEqual([
      'bucket,key,size,last_modified,storage_class,etag,content_type,version_id,deleted_at,tags,user_metadata',
      'photos,plain',
      "photos,'=1+1",
      "photos,'+a",
      "photos,'-a",
      "photos,'@a",
      "photos,'\uff1d1+1",
      'photos,"a,""b"""',
      `photos,"${SAFE_KEY.replace('"', '""')}"`,
      '',
    ]);
  });

  it('writes tags and metadata into CSV, and nothing before an error', async () => {
    const world = createCliWorld();
    const { bucket, key, clock, deleted, settled, source, indexed_at } = objectDocument;
    world.nextAnswers({
      items: [{ bucket, key, clock, deleted, settled, source, indexed_at, tags: { team: 'a,b', x: '' }, user_metadata: { n: '1' } }],
    });
    expect((await world.run('search --csv')).stdout.split('\n')[1]).toBe(
      `photos,"${SAFE_KEY.replace('"', '""')}",,,,,,,,"{""team"":""a,b"",""x"":""""}","{""n"":""1""}"`,
    );
    world.nextFails(new RequestError('request.invalid', 'query: at character 1: no'));
    expect(await world.run('search --csv')).toMatchObject({ stdout: '', exitCode: 64 });
  });

  it('says on stderr that nothing matches and ends with 0', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [] });
    expect(await world.run('search nothing')).toEqual({ exitCode: 0, stdout: '', stderr: 'No object in the index matches.\n' });
    world.nextAnswers({ items: [] });
    expect(JSON.parse((await world.run('search nothing --json')).stdout)).toEqual({ items: [] });
  });
});

describe('tally explain', () => {
  it('takes a key that begins with dashes after --', async () => {
    const world = createCliWorld();
    await world.run('explain photos -- --json');
    expect(world.asked).toEqual([['explainObject', { params: { bucket: 'photos' }, query: { key: '--json' } }]]);
  });

  it('shows what S3 says, and what it does not say not at all', async () => {
    const world = createCliWorld();
    const state = {
      present: true,
      etag: 'e2',
      size_bytes: 2_048,
      version_id: 'v2',
      last_modified: '2026-01-02T00:00:00.000Z',
      storage_class: 'GLACIER',
    };
    const sentence = `The index lacks ${nastyKey}.`;
    const { index: _, ...without } = explanation;
    world.nextAnswers({
      ...without,
      key: nastyKey,
      storage: { state, observed_at: '2026-01-02T03:04:05.000Z' },
      agrees: 'unknown',
      sentence,
    });
    const { stdout } = await world.run('explain', 'photos', nastyKey);
    expect(unsafeIn(stdout)).toEqual([]);
    expect(stdout).toContain(`s3://photos/${SAFE_KEY}\nThe index lacks ${SAFE_KEY}.\n`);
    for (const said of ['nothing  present', '2 KiB', 'e2', 'v2', '2026-01-02T00:00:00.000Z', 'GLACIER'])
      expect(stdout).toMatch(new RegExp(said));
    expect(stdout).not.toContain('written');
  });

  it('says what S3 answered instead, and what to do', async () => {
    const world = createCliWorld();
    const storage = { fault: { code: 'object.denied', reason: '403' }, advice: 'Allow s3:GetObject.' };
    world.nextAnswers({ ...explanation, index: { ...objectDocument, deleted: true, settled: false }, storage });
    const { exitCode, stdout } = await world.run('explain photos cat.jpg');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^state +deleted, provisional +unknown$/m);
    expect(stdout).toMatch(/^agree +no$/m);
    expect(stdout).toMatch(/^written by +native$/m);
    expect(stdout).toMatch(/^S3 answered +403 \(object.denied\)$/m);
    expect(stdout).toMatch(/^advice +Allow s3:GetObject.$/m);
  });
});

const NEVER = { state: 'never_compared', severity: 'warning', sentence: 'It has never been fully compared' };

describe('tally bucket', () => {
  it('add names the first re-index that was started, and starts none with --no-reindex', async () => {
    const world = createCliWorld();
    world.nextAnswers(planAnswer);
    world.nextAnswers({ ...bucketAnswer, status: NEVER, job_id: 'job-7' });
    const added = await world.run('bucket add photos');
    expect(added.stdout).toMatch(/^status +It has never been fully compared$/m);
    expect(added.stderr).toContain('Tally is now indexing its events.\n');
    // when it begins is what the status says
    expect(added.stderr).toContain('To follow the first re-index, which indexes the existing objects: tally jobs job-7\n');
    expect((await world.run('bucket add photos --no-reindex')).stderr).toContain('tally reindex photos');
    expect(world.asked.at(-1)).toEqual(['addBucket', { body: { bucket: 'photos', reindex: false } }]);
  });

  it('add says that no event has arrived yet, and how to see what keeps it away', async () => {
    const world = createCliWorld();
    const sentence = 'Configured at 10:02 UTC; no event has arrived since';
    const act = { kind: 'doctor', command: 'tally doctor photos' };
    world.nextAnswers(planAnswer);
    world.nextAnswers({ ...bucketAnswer, status: { state: 'events_unproven', severity: 'bad', sentence, act }, job_id: 'job-7' });
    const { stderr } = await world.run('bucket add photos');
    expect(stderr).not.toContain('now indexing its events');
    expect(stderr).toContain(`${sentence}. The connection is proven once its events arrive; until then: tally doctor photos\n`);
  });
});

describe('tally config', () => {
  const env = {
    TALLY_INDEX_URL: 'https://tally:pa%2Css@index-1:9200,https://token@index-2:9200',
    TALLY_HTTP_ADDRESS: '[::1]:9090',
    TALLY_ROLES: 'ingest,http',
  };

  it('shows every setting with what it means, passwords masked, and the same as JSON', async () => {
    const world = createCliWorld({ env });
    const { stdout } = await world.run('config');
    expect(stdout).toContain('\nTALLY_INDEX_URL=https://tally:***@index-1:9200,https://***@index-2:9200\n');
    expect(stdout).toContain('\nTALLY_HTTP_ADDRESS=[::1]:9090\n');
    expect(stdout).toContain('\nTALLY_ROLES=ingest,http\n');
    expect(stdout).toMatch(/^# The lowest severity to log: .*\nTALLY_LOG_LEVEL=info$/m);
    expect(JSON.parse((await world.run('config --json')).stdout)).toMatchObject({
      TALLY_INDEX_URL: 'https://tally:***@index-1:9200,https://***@index-2:9200',
      TALLY_HTTP_ADDRESS: '[::1]:9090',
      TALLY_ROLES: ['ingest', 'http'],
      TALLY_INDEX_SHARDS: 1,
      TALLY_EMBEDDED: false,
    });
    expect(world.opened()).toBe(0);
  });
});
