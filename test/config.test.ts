import { describe, expect, it } from 'vitest';
import { awsEnvironment, parseSettings, serveMistakes, settingsSchema, type Settings } from '../src/config.ts';

function settingsOf(environment: Readonly<Record<string, string | undefined>>): Settings {
  const parsed = parseSettings(environment);
  if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
  return parsed.settings;
}

function mistakesOf(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const parsed = parseSettings(environment);
  return parsed.ok ? [] : parsed.mistakes;
}

describe('settings', () => {
  it('have defaults that need no environment at all', () => {
    expect(settingsOf({ PATH: '/bin' })).toMatchObject({
      TALLY_QUEUE_URL: [],
      TALLY_ROLES: ['ingest', 'reindex', 'http'],
      TALLY_HTTP_ADDRESS: { host: '127.0.0.1', port: 8080 },
      TALLY_HEALTH_ADDRESS: { host: '127.0.0.1', port: 8081 },
      TALLY_SHUTDOWN_TIMEOUT_MS: 25_000,
      TALLY_EMBEDDED: false,
      TALLY_EMBEDDED_DATA: './data',
    });
  });

  it('are each described', () => {
    const undescribed = Object.entries(settingsSchema.shape).filter(([, schema]) => (schema.description ?? '') === '');
    expect(undescribed.map(([name]) => name)).toEqual([]);
  });

  it('that are empty count as not set', () => {
    expect(settingsOf({ TALLY_LOG_LEVEL: '', TALLY_INDEX_URL: '', TALLY_NO_SUCH: '' }).TALLY_LOG_LEVEL).toBe('info');
  });

  it('tell all mistakes at once, names that do not exist among them', () => {
    const environment = {
      TALLY_QEUE_URL: 'https://sqs/1/q',
      TALLY_QUEUE_URL: 'https://sqs/1/q, nonsense',
      TALLY_INDEX_URL: 'ftp://index',
      TALLY_INDEX_PREFIX: 'my-objects-here',
      TALLY_ROLES: 'ingest,dance',
      TALLY_HTTP_ADDRESS: '0.0.0.0:8080',
      TALLY_HEALTH_ADDRESS: 'localhost:99999',
      TALLY_BULK_BYTES: '1',
      TALLY_BULK_LINGER_MS: '-1',
      TALLY_EMBEDDED: 'yes',
    };
    const named = mistakesOf(environment).map((mistake) => mistake.slice(0, mistake.indexOf(':')));
    expect(named.toSorted()).toEqual(Object.keys(environment).toSorted());
  });

  it.each([
    ['TALLY_HTTP_ADDRESS', '0.0.0.0:8080', 'loopback'],
    ['TALLY_HTTP_ADDRESS', 'tally.internal:8080', 'loopback'],
    ['TALLY_HTTP_ADDRESS', '8080', 'HOST:PORT'],
    ['TALLY_HEALTH_ADDRESS', '[::1]:65536', 'at most 65535'],
    ['TALLY_ROLES', ',', 'at least one role'],
    ['TALLY_BULK_ACTIONS', '0', 'at least 1'],
    ['TALLY_BULK_ACTIONS', '10001', 'at most 10000'],
    ['TALLY_BULK_ACTIONS', '1e3', 'a whole number from 1 to 10000'],
    ['TALLY_INDEX_PREFIX', 'Tally', '1 to 32 of a-z'],
    ['TALLY_INDEX_PREFIX', 'a-state', 'may not contain'],
    ['TALLY_QUEUE_URL', Array.from({ length: 11 }, (_, index) => `https://sqs/1/${index}`).join(','), '10'],
  ])('%s refuses %s and says why', (name, value, reason) => {
    expect(mistakesOf({ [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name}: .*${reason}`))]);
  });

  it.each([
    'htps://tally:secret@index',
    'https://tally:pa#ss-secret@index',
    'https://tally:1#secret@index',
    'https://tally:pa/secret@index',
    'https://tally:1/secret@index',
    'https://tally:1?secret@index',
    'https://tally:1,secret@index',
    'https://tally:secret100%@index',
    'https://tally:secret%ff@index',
    'https://secret%@index',
    'https://tally:secret@index:99999999',
    'https://tally:secret@index/path',
    'https://tally:secret@index?pretty',
    'https://tally:secret@index#',
    'https://tally:secret@',
    'https://tally:secret@a b',
    'https://tally:secret@index,',
    'https://index,ftp://tally:secret@index',
    'https://index,https://tally:1#secret@index,https://tally:2#secret@index',
    'sqlite:',
  ])('do not take %s for an index, in one mistake that does not repeat it', (value) => {
    const mistakes = mistakesOf({ TALLY_INDEX_URL: value });
    expect(mistakes).toEqual([expect.stringMatching(/^TALLY_INDEX_URL: must /)]);
    expect(mistakes.join()).not.toContain('secret');
  });

  it.each([
    'http://127.0.0.1:9200',
    'https://tally:p%23%25%40s@index:9200/',
    'https://tally:secret@a:9200, https://tally:secret@b:9200',
    'https://[::1]:9200',
    'https://token@index',
    'sqlite:data/a,b#c%.sqlite',
  ])('take %s for an index', (value) => {
    expect(settingsOf({ TALLY_INDEX_URL: ` ${value} ` }).TALLY_INDEX_URL).toBe(value);
  });

  it.each(['TALLY_QUEUE_URL', 'TALLY_WORK_QUEUE_URL', 'TALLY_DEAD_LETTER_QUEUE_URL'])(
    '%s takes the URL of a queue, without user and password',
    (name) => {
      for (const value of [
        'https://key:secret@sqs/1/q',
        'https://key@sqs/1/q',
        'https://:secret@sqs/1/q',
        'https://sqs:99999999/1/q',
        'q',
      ]) {
        const mistakes = mistakesOf({ [name]: value });
        expect(mistakes).toEqual([expect.stringMatching(new RegExp(`^${name}: must (name no user|be the URL)`))]);
        expect(mistakes.join()).not.toContain('secret');
      }
      expect(mistakesOf({ [name]: 'http://localhost:4566/000000000000/q' })).toEqual([]);
    },
  );

  it('read lists, addresses and flags', () => {
    const settings = settingsOf({
      TALLY_QUEUE_URL: ' https://sqs/1/a , https://sqs/1/b,',
      TALLY_HTTP_ADDRESS: '[::1]:0',
      TALLY_EMBEDDED: 'true',
      TALLY_AUTO_CONNECT: 'false',
      TALLY_BULK_ACTIONS: ' 500 ',
    });
    expect(settings).toMatchObject({
      TALLY_QUEUE_URL: ['https://sqs/1/a', 'https://sqs/1/b'],
      TALLY_HTTP_ADDRESS: { host: '::1', port: 0 },
      TALLY_EMBEDDED: true,
      TALLY_AUTO_CONNECT: false,
      TALLY_BULK_ACTIONS: 500,
    });
  });

  it.each([
    'TALLY_SERVICE_HOST',
    'TALLY_SERVICE_PORT',
    'TALLY_SERVICE_PORT_HTTP',
    'TALLY_PORT',
    'TALLY_PORT_8080_TCP',
    'TALLY_PORT_8080_TCP_ADDR',
    'TALLY_HEALTH_SERVICE_HOST',
    'TALLY_HEALTH_PORT_8081_TCP',
  ])('leave %s alone, which Kubernetes sets for a service of that name', (name) => {
    expect(mistakesOf({ [name]: 'tcp://10.0.0.1:8080' })).toEqual([]);
  });
});

describe('serving', () => {
  it('needs a bucket queue and an index', () => {
    expect(serveMistakes(settingsOf({}))).toEqual([
      expect.stringMatching(/^TALLY_QUEUE_URL: must be set/),
      expect.stringMatching(/^TALLY_INDEX_URL: must be set/),
      expect.stringContaining('tally serve --embedded'),
    ]);
    expect(serveMistakes(settingsOf({ TALLY_QUEUE_URL: 'https://sqs/1/q', TALLY_INDEX_URL: 'sqlite:index.sqlite' }))).toEqual([]);
  });

  it('needs no bucket queue without the role ingest', () => {
    expect(serveMistakes(settingsOf({ TALLY_ROLES: 'http', TALLY_INDEX_URL: 'sqlite:index.sqlite' }))).toEqual([]);
  });

  it('embedded needs nothing and takes no queue', () => {
    expect(serveMistakes(settingsOf({ TALLY_EMBEDDED: 'true' }))).toEqual([]);
    const mistakes = serveMistakes(settingsOf({ TALLY_EMBEDDED: 'true', TALLY_QUEUE_URL: 'https://sqs/1/q' }));
    expect(mistakes).toEqual([expect.stringMatching(/^TALLY_QUEUE_URL: must not be set/)]);
  });
});

describe('the AWS environment', () => {
  it.each([
    [{}, 'us-east-1'],
    [{ AWS_DEFAULT_REGION: 'eu-north-1' }, 'eu-north-1'],
    [{ AWS_DEFAULT_REGION: 'eu-north-1', AWS_REGION: 'eu-west-1' }, 'eu-west-1'],
    [{ AWS_DEFAULT_REGION: 'eu-north-1', AWS_REGION: '' }, 'eu-north-1'],
  ])('of %j has region %s', (environment, region) => {
    expect(awsEnvironment(environment).region).toBe(region);
  });

  it('has endpoints only where they are set, those of a service first', () => {
    expect(awsEnvironment({ AWS_ENDPOINT_URL: '' }).endpoints).toEqual({ sqs: undefined, sns: undefined, s3: undefined });
    expect(awsEnvironment({ AWS_ENDPOINT_URL: 'http://all', AWS_ENDPOINT_URL_S3: 'http://minio' }).endpoints).toEqual({
      sqs: 'http://all',
      sns: 'http://all',
      s3: 'http://minio',
    });
  });
});
