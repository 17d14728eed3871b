import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { serveMistakes, type ReadFile } from '../../src/settings/settings.ts';
import type { IndexLocation } from '../../src/settings/urls.ts';
import { mistakesOf, noFiles, settingsOf } from './parsed.ts';

describe('settings', () => {
  it('tell all mistakes at once, names that do not exist among them', () => {
    const environment = {
      TALLY_QEUE_URL: 'https://sqs/1/q',
      TALLY_QUEUE_URL: 'https://sqs/1/q, nonsense',
      TALLY_INDEX_URL: 'ftp://index',
      TALLY_INDEX_PREFIX: 'my-objects-here',
      TALLY_ROLES: 'ingest,dance',
      TALLY_HTTP_ADDRESS: 'everywhere',
      TALLY_HEALTH_ADDRESS: 'localhost:99999',
      TALLY_SHUTDOWN_TIMEOUT_MS: '1',
      TALLY_INGEST_WAIT_S: '-1',
      TALLY_EMBEDDED: 'yes',
    };
    const named = mistakesOf(environment).map((mistake) => mistake.slice(0, mistake.indexOf(':')));
    expect(named.toSorted()).toEqual(Object.keys(environment).toSorted());
  });

  it.each([
    ['TALLY_HTTP_ADDRESS', '8080', 'HOST:PORT'],
    ['TALLY_HEALTH_ADDRESS', '[::1]:65536', 'at most 65535'],
    ['TALLY_EVENTS_ADDRESS', '8083', 'HOST:PORT'],
    ['TALLY_ROLES', ',', 'at least one role'],
    ['TALLY_INDEX_SHARDS', '0', 'at least 1'],
    ['TALLY_INDEX_SHARDS', '65', 'at most 64'],
    ['TALLY_INDEX_SHARDS', '1e1', 'a whole number from 1 to 64'],
    ['TALLY_SOCKET', `/tmp/${'s'.repeat(99)}`, 'at most 103 bytes'],
    ['TALLY_INDEX_PREFIX', 'Tally', '1 to 32 of a-z'],
    ['TALLY_INDEX_PREFIX', 'a-state', 'may not contain'],
    ['TALLY_INDEX_AUTH', 'kerberos', 'must be none, basic or sigv4'],
    ['TALLY_QUEUE_URL', Array.from({ length: 11 }, (_, index) => `https://sqs/1/${index}`).join(','), '10'],
  ])('%s refuses %s and says why', (name, value, reason) => {
    expect(mistakesOf({ [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name}: .*${reason}`))]);
  });

  it.each([
    'htps://tally:secret@index',
    'https://tally:1#secret@index',
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

  it.each<[url: string, index: IndexLocation]>([
    ['http://127.0.0.1:9200', { product: 'opensearch', nodes: ['http://127.0.0.1:9200'] }],
    ['https://tally:p%23%25%40s@index:9200/', { product: 'opensearch', nodes: ['https://tally:p%23%25%40s@index:9200/'] }],
    [
      'https://tally:secret@a:9200, https://tally:secret@b:9200',
      { product: 'opensearch', nodes: ['https://tally:secret@a:9200', 'https://tally:secret@b:9200'] },
    ],
    ['https://[::1]:9200', { product: 'opensearch', nodes: ['https://[::1]:9200'] }],
    ['https://token@index', { product: 'opensearch', nodes: ['https://token@index'] }],
    ['sqlite:data/a,b#c%.sqlite', { product: 'sqlite', path: 'data/a,b#c%.sqlite' }],
  ])('take %s for an index', (url, index) => {
    expect(settingsOf({ TALLY_INDEX_URL: ` ${url} ` }).TALLY_INDEX_URL).toEqual(index);
  });

  it.each(['TALLY_QUEUE_URL', 'TALLY_DEAD_LETTER_QUEUE_URL'])('%s takes the URL of a queue, without user and password', (name) => {
    for (const value of ['https://key:secret@sqs/1/q', 'https://key@sqs/1/q', 'https://:secret@sqs/1/q', 'https://sqs:99999999/1/q', 'q']) {
      const mistakes = mistakesOf({ [name]: value });
      expect(mistakes).toEqual([expect.stringMatching(new RegExp(`^${name}: must (not contain a user|be the URL)`))]);
      expect(mistakes.join()).not.toContain('secret');
    }
    expect(mistakesOf({ [name]: 'http://localhost:4566/000000000000/q' })).toEqual([]);
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

describe('a secret in a file', () => {
  const secret = 'https://tally:secret@index:9200';
  const secretIndex = { product: 'opensearch', nodes: [secret] };
  const holding =
    (text: string, mode = 0o100600): ReadFile =>
    () => ({ text, mode });

  it.each([secret, `${secret}\n`, `${secret}\r\n`])('is its setting, without the last newline: %j', (text) => {
    const paths: string[] = [];
    const settings = settingsOf({ TALLY_INDEX_URL_FILE: ' /run/credentials/index-url ' }, (path) => {
      paths.push(path);
      return { text, mode: 0o100400 };
    });
    expect(settings).toMatchObject({ TALLY_INDEX_URL: secretIndex, TALLY_INDEX_URL_FILE: '/run/credentials/index-url' });
    expect(paths).toEqual(['/run/credentials/index-url']);
    // readable by everyone, as Kubernetes and Docker mount it
    expect(settingsOf({ TALLY_INDEX_URL_FILE: 'f' }, holding(text, 0o100444)).TALLY_INDEX_URL).toEqual(secretIndex);
  });

  it.each<[what: string, readFile: ReadFile, mistake: RegExp]>([
    ['not there', noFiles, /can be read \(ENOENT\)$/],
    ['empty', holding(''), /not empty$/],
    ['empty but for a newline', holding('\n'), /not empty$/],
    ['writable by everyone', holding(secret, 0o100602), /not world-writable/],
    ['of two lines', holding(`${secret}\n${secret}`), /must be an OpenSearch URL/],
    ['no index', holding('ftp://tally:secret@index'), /must be an OpenSearch URL/],
  ])('that is %s is one mistake, which repeats neither content nor path', (_, readFile, mistake) => {
    const mistakes = mistakesOf({ TALLY_INDEX_URL_FILE: '/secret-path' }, readFile);
    expect(mistakes).toEqual([expect.stringMatching(mistake)]);
    expect(mistakes.join()).toMatch(/^TALLY_INDEX_URL_FILE: /);
    expect(mistakes.join()).not.toContain('secret');
  });

  it('excludes the setting itself, and is told among the other mistakes', () => {
    const environment = { TALLY_INDEX_URL: secret, TALLY_INDEX_URL_FILE: 'f', TALLY_QUEUE_URL_FILE: 'f', TALLY_SHUTDOWN_TIMEOUT_MS: '1' };
    const mistakes = mistakesOf(environment, holding(secret));
    expect(mistakes.map((mistake) => mistake.slice(0, mistake.indexOf(':'))).toSorted()).toEqual([
      'TALLY_INDEX_URL_FILE',
      'TALLY_QUEUE_URL_FILE',
      'TALLY_SHUTDOWN_TIMEOUT_MS',
    ]);
    expect(mistakesOf({ TALLY_INDEX_URL: '', TALLY_INDEX_URL_FILE: 'f' }, holding(secret))).toEqual([]);
  });
});

describe('authentication at the index', () => {
  it.each([
    [undefined, 'https://index'],
    [undefined, 'https://tally:secret@a,https://tally:secret@b'],
    ['none', 'https://a,https://b'],
    ['basic', 'https://tally:secret@a'],
    ['sigv4', 'https://search-x.eu-west-1.es.amazonaws.com'],
    ['sigv4', 'sqlite:index.sqlite'],
  ])('%s goes with %s', (auth, url) => {
    expect(mistakesOf({ TALLY_INDEX_URL: url, TALLY_INDEX_AUTH: auth })).toEqual([]);
  });

  it.each([
    [undefined, 'https://tally:secret@a,https://b', 'must have user and password in every URL'],
    ['none', 'https://a,https://tally:secret@b', 'must have no user and password'],
    ['sigv4', 'https://tally:secret@a', 'must have no user and password'],
    ['basic', 'https://a', 'must have user and password'],
    ['sigv4', 'https://1a2b3c.eu-west-1.aoss.amazonaws.com', 'Serverless'],
    ['sigv4', 'https://1a2b3c.aoss.eu-west-1.on.aws:443', 'Serverless'],
  ])('%s does not go with %s', (auth, url, reason) => {
    for (const [environment, name] of [
      [{ TALLY_INDEX_URL: url }, 'TALLY_INDEX_URL'],
      [{ TALLY_INDEX_URL_FILE: 'f' }, 'TALLY_INDEX_URL_FILE'],
    ] as const) {
      const mistakes = mistakesOf({ ...environment, TALLY_INDEX_AUTH: auth }, () => ({ text: url, mode: 0o600 }));
      expect(mistakes).toEqual([expect.stringMatching(new RegExp(`^${name}: .*${reason}`))]);
      expect(mistakes.join()).not.toContain('secret');
    }
  });
});

describe('a CA file', () => {
  const environment = { TALLY_INDEX_URL: 'https://index', TALLY_INDEX_CA_FILE: 'ca.pem' };

  it.each<[what: string, readFile: ReadFile]>([
    ['not there', noFiles],
    ['something else', () => ({ text: 'https://tally:secret@index', mode: 0o644 })],
    ['writable by everyone', () => ({ text: rootCertificates.join('\n'), mode: 0o666 })],
  ])('that is %s is a mistake', (_, readFile) => {
    expect(mistakesOf(environment, readFile)).toEqual([expect.stringMatching(/^TALLY_INDEX_CA_FILE: must name/)]);
  });

  it('holds certificates, and needs TLS at every node', () => {
    const file: ReadFile = () => ({ text: rootCertificates.slice(0, 2).join('\n'), mode: 0o644 });
    expect(mistakesOf(environment, file)).toEqual([]);
    const mistakes = mistakesOf({ ...environment, TALLY_INDEX_URL: 'https://a,http://b' }, file);
    expect(mistakes).toEqual(['TALLY_INDEX_URL: must have only https URLs when TALLY_INDEX_CA_FILE is set']);
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
    const receiving = { TALLY_ROLES: 'http', TALLY_INDEX_URL: 'sqlite:index.sqlite', TALLY_EVENTS_ADDRESS: '0.0.0.0:8083' };
    expect(serveMistakes(settingsOf(receiving))[0]).toMatch(/^TALLY_EVENTS_ADDRESS: needs TALLY_QUEUE_URL/);
  });

  it('embedded needs nothing and takes no queue', () => {
    expect(serveMistakes(settingsOf({ TALLY_EMBEDDED: 'true' }))).toEqual([]);
    const mistakes = serveMistakes(settingsOf({ TALLY_EMBEDDED: 'true', TALLY_QUEUE_URL: 'https://sqs/1/q' }));
    expect(mistakes).toEqual([expect.stringMatching(/^TALLY_QUEUE_URL: must not be set/)]);
  });
});
