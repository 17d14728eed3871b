import { connect } from 'node:net';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { rows } from '../../src/registry/contract/contract.ts';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createServer } from '../../src/registry/server.ts';
import type { ReadinessReport } from '../../src/observing/readiness.ts';
import { createFakeControl, type FakeControl, usage } from '../support/fakes/control.ts';
import { createFakeTelemetry, type FakeTelemetry } from '../support/fakes/ports.ts';
import { get, type BrowserAnswer } from '../support/identity/browser.ts';
import { jsonOf } from '../support/identity/http-world.ts';
import { listenControlPlane, type ControlPlane } from '../support/servers/control-plane.ts';

const ready: ReadinessReport = { ready: true, roles: { http: { ready: true } }, checks: { index: { status: 'ok' } } };

let fake: FakeControl;
let telemetry: FakeTelemetry;
let report: ReadinessReport;
let listener: ControlPlane;
let port: number;

beforeEach(async () => {
  fake = createFakeControl();
  telemetry = createFakeTelemetry();
  report = ready;
  listener = await listenControlPlane(parts());
  ({ port } = listener);
});

const parts = () => ({ operations: fake.checked, readiness: { read: () => report }, telemetry });

afterEach(() => listener.close());

type Answer = BrowserAnswer & { readonly json: Record<string, unknown> };

interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Default: the port of the listener that each test has. */
  readonly to?: number;
}

async function send(method: string, path: string, { to = port, ...sent }: Sent = {}): Promise<Answer> {
  const answer = await get(`http://127.0.0.1:${to}${path}`, { ...sent, method });
  const isJson = String(answer.headers['content-type']).includes('json') && answer.text !== '';
  return { ...answer, json: isJson ? jsonOf(answer) : {} };
}

const sendJson = (method: string, path: string, value: unknown): Promise<Answer> =>
  send(method, path, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) });

/** What is answered to a text that no HTTP client would send. */
function say(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
    socket.on('close', () => resolve(received)).on('error', reject);
  });
}

function expectProblem(answer: Answer, status: number, code: string): void {
  expect(answer.json).toMatchObject({
    type: expect.stringMatching(new RegExp(`^https://github.com/.*/docs/reference/error-codes.md#${code.replaceAll('.', '-')}$`)),
    status,
    code,
    title: expect.any(String),
    detail: expect.any(String),
  });
  expect(answer.status).toBe(status);
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
}

// what checkRequest refuses: registry/contract/contract.test.ts
describe('requests that are not as documented', () => {
  it.each(['{"bucket"', '{"__proto__":{"x":1}}', '{"constructor":{"prototype":{"x":1}}}', ''])('a body %j is refused', async (body) => {
    const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
    expectProblem(await send('POST', '/v1/buckets', { headers, body }), 400, 'request.invalid');
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it('takes bodies of 64 KiB at most', async () => {
    expectProblem(await sendJson('POST', '/v1/buckets', { bucket: 'x'.repeat(70_000) }), 413, 'request.too-large');
  });

  it.each([
    ['DELETE', '/v1/jobs/job-1', {}, undefined, 'GET, PATCH, HEAD'],
    ['OPTIONS', '/v1/objects', {}, undefined, 'GET, HEAD'],
    ['QUERY', '/v1/buckets', { 'content-type': 'text/plain' }, 'x', 'GET, POST, HEAD'],
    ['GET', '/v1/dead-letters/replay/', { 'content-length': '2' }, '{}', undefined],
    ['GET', '/v1/buckets/photos/reindex', { 'content-length': '2' }, '{}', 'POST'],
    ['POST', '/livez', { 'content-type': 'text/plain' }, 'x', 'GET, HEAD'],
  ])('says which methods a path has, whatever comes with the request: %s %s %j', async (...[method, path, headers, body, allow]) => {
    const answer = await send(method, path, { headers, ...(body !== undefined && { body }) });
    if (allow === undefined) expectProblem(answer, 404, 'request.not-found');
    else expectProblem(answer, 405, 'request.method-not-allowed');
    expect(answer.headers.allow).toBe(allow);
  });

  it.each(['/v2/objects', '/v1/objects/', '/v1/buckets/photos/nothing', '//v1/objects'])('knows no %s', async (path) => {
    expectProblem(await send('GET', path), 404, 'request.not-found');
  });

  it.each([
    ['GET', '/v1/buckets/'],
    ['GET', '/v1/buckets//explain?key=k'],
    ['POST', '/v1/buckets//reindex'],
    ['GET', '/v1/buckets/%ff'],
    ['GET', '/v1/buckets/%'],
    ['GET', '/v1/objects?limit=ten'],
    ['GET', '/v1/objects?bucket=a&bucket=b'],
  ])('%s %s is refused', async (method, path) => {
    expectProblem(await send(method, path), 400, 'request.invalid');
    expect(fake.asked).toEqual([]);
  });

  it('refuses what is no HTTP, and closes', async () => {
    const text = await say('HELO tally\r\n\r\n');
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
  });
});

it.each(['Host: 127.0.0.1', 'Authorization: Bearer qk_x', 'Origin: http://127.0.0.1', 'Content-Type: application/json'])(
  'Fix: a header that decides who may do what is not given twice: %s',
  async (header) => {
    const host = header.startsWith('Host') ? '' : 'Host: 127.0.0.1\r\n';
    const text = await say(`GET /v1/buckets HTTP/1.1\r\n${host}${header}\r\n${header}\r\nConnection: close\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain('"code":"request.invalid"');
  },
);

describe('a flood of searches', () => {
  /** A registry whose searches and sums wait until `open` is called, and how many of them ran at most. */
  async function startGated() {
    const gate = Promise.withResolvers<void>();
    const most = { searches: 0, sums: 0 };
    const running = { searches: 0, sums: 0 };
    const waiting =
      <Answered>(kind: keyof typeof most, answer: Answered) =>
      async () => {
        most[kind] = Math.max(most[kind], ++running[kind]);
        await gate.promise;
        running[kind] -= 1;
        return answer;
      };
    const operations = { ...fake.checked, searchObjects: waiting('searches', { items: [] }), getUsage: waiting('sums', usage) };
    const { port: to, close } = await listenControlPlane({ ...parts(), operations });
    onTestFinished(() => {
      gate.resolve();
      return close();
    });
    return { ask: (path: string) => send('GET', path, { to }), most, open: () => gate.resolve() };
  }

  it('Fix: has its turns beside everything else, and no more wait than can be answered in a second', async () => {
    const slow = await startGated();
    const searches = Array.from({ length: 200 }, () => slow.ask('/v1/objects?q=cat'));
    const refused = await Promise.any(searches.map(async (each) => ((await each).status === 503 ? each : Promise.reject(new Error()))));
    expectProblem(refused, 503, 'request.overloaded');
    expect(refused.headers['retry-after']).toBe('1');
    for (const path of ['/livez', '/v1/buckets']) expect((await slow.ask(path)).status).toBe(200);
    slow.open();
    const statuses = Map.groupBy(await Promise.all(searches), ({ status }) => status);
    expect(statuses.get(200)?.length).toBeGreaterThanOrEqual(100);
    expect(new Set(statuses.keys())).toEqual(new Set([200, 503]));
    expect(slow.most.searches).toBe(4);
    expect((await slow.ask('/v1/objects?q=cat')).status).toBe(200);
  });

  it('is not held up by sums, of which one is made at a time', async () => {
    const slow = await startGated();
    const sums = Array.from({ length: 10 }, () => slow.ask('/v1/usage?q=cat'));
    const search = slow.ask('/v1/objects?q=cat');
    await expect.poll(() => slow.most).toEqual({ searches: 1, sums: 1 });
    slow.open();
    expect(new Set((await Promise.all([search, ...sums])).map(({ status }) => status))).toEqual(new Set([200]));
    expect(slow.most.sums).toBe(1);
  });
});

describe('callers from elsewhere', () => {
  it.each(['evil.example', 'localhost.evil.example:8080', '127.0.0.1.evil.example', '10.0.0.1:8080', '127.0.0.1@evil.example', '0.0.0.0'])(
    'Host %j is refused',
    async (host) => {
      for (const path of ['/v1/buckets', '/config.json', '/metrics', '/nothing']) {
        expectProblem(await send('GET', path, { headers: { host } }), 403, 'request.forbidden-origin');
      }
      expect(fake.asked).toEqual([]);
    },
  );

  it('takes requests to this machine, and from pages of the very host and port that was asked', async () => {
    for (const host of ['127.0.0.1:1', 'LOCALHOST']) expect((await send('GET', '/v1/buckets', { headers: { host } })).status).toBe(200);
    for (const host of ['localhost:8080', '127.0.0.1', '[::1]:8080']) {
      expect((await send('GET', '/v1/buckets', { headers: { host, origin: `http://${host}` } })).status).toBe(200);
    }
    expectProblem(await send('GET', '/v1/buckets', { headers: { origin: 'http://localhost:1' } }), 403, 'request.forbidden-origin');
  });

  it.each(['https://evil.example', 'null', 'http://localhost.evil.example', 'file://', ''])('Origin %j is refused', async (origin) => {
    expectProblem(await send('POST', '/v1/buckets/photos/reindex', { headers: { origin } }), 403, 'request.forbidden-origin');
    expect(fake.asked).toEqual([]);
  });

  it.each([
    ['forwarded', 'for=192.0.2.60;proto=http'],
    ['x-forwarded-for', '192.0.2.60'],
    ['X-Forwarded-Host', 'tally.example'],
    ['x-forwarded-proto', ''],
    ['x-real-ip', '192.0.2.60'],
    ['via', '1.1 vegur'],
  ])('Fix: a request that came through a reverse proxy is refused, with what to do (%s)', async (name, value) => {
    for (const path of ['/v1/buckets', '/config.json', '/nothing']) {
      const answer = await send('GET', path, { headers: { [name]: value } });
      expectProblem(answer, 403, 'request.forwarded');
      expect(answer.json['detail']).toMatch(/reverse proxy.*ssh -L/);
    }
    expect(fake.asked).toEqual([]);
    expect((await send('GET', '/livez')).status).toBe(200);
  });

  it('refuses what a browser calls cross-site', async () => {
    const answer = await send('GET', '/v1/buckets', { headers: { 'sec-fetch-site': 'cross-site' } });
    expectProblem(answer, 403, 'request.forbidden-origin');
    expect((await send('GET', '/v1/buckets', { headers: { 'sec-fetch-site': 'same-origin' } })).status).toBe(200);
  });

  it.each([
    undefined,
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'text/json',
  ])('takes no body of the type %s', async (type) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    const answer = await send('POST', '/v1/buckets', { headers, body: '{"bucket":"photos"}' });
    expectProblem(answer, 415, 'request.unsupported-media-type');
    expect(fake.asked).toEqual([]);
  });
});

describe('operations that fail', () => {
  it('answers a refusal with its status, its code and what it adds', async () => {
    fake.nextDoes(() => Promise.reject(new RequestError('job.conflict', 'job-0 runs', { job_id: 'job-0', status: 1 })));
    const answer = await sendJson('POST', '/v1/buckets/photos/reindex', {});
    expectProblem(answer, 409, 'job.conflict');
    expect(answer.json).toMatchObject({ detail: 'job-0 runs', job_id: 'job-0' });
  });

  it('answers a fault with 503 and its advice, and masks the passwords of URLs', async () => {
    fake.nextDoes(() => Promise.reject(new FaultError('index.unreachable', 'no answer from https://tally:secret@index:9200')));
    const answer = await send('GET', '/v1/objects');
    expectProblem(answer, 503, 'index.unreachable');
    expect(answer.json.detail).toBe('no answer from https://tally:***@index:9200');
    expect(answer.json.advice).toContain('TALLY_INDEX_URL');
    expect(telemetry.recorded('requestFailed')).toEqual([]);
  });

  it.each([new TypeError('secret of /etc/passwd'), new FaultError('internal.unexpected', 'secret'), 'secret'])(
    'logs an unexpected error, and tells the caller nothing of it',
    async (thrown) => {
      fake.nextDoes(() => Promise.reject(thrown));
      const answer = await send('GET', '/v1/objects');
      expectProblem(answer, 500, 'internal.unexpected');
      expect(answer.text).not.toContain('secret');
      expect(telemetry.recorded('requestFailed')).toHaveLength(1);
    },
  );

  it('answers for an operation that neither ends in time nor heeds its signal', async () => {
    const hasty = await listenControlPlane({ ...parts(), operationTimeoutMs: 20 });
    fake.nextDoes(() => new Promise(() => undefined));
    const answer = await send('GET', '/v1/objects', { to: hasty.port });
    await hasty.close();
    expectProblem(answer, 503, 'request.timeout');
    expect(fake.contexts.at(-1)?.signal.aborted).toBe(true);
    expect(telemetry.recorded('requestFailed')).toEqual([]);
  });

  it('ends what is still asked when it closes', async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    fake.nextDoes((signal) => {
      begun.resolve(signal);
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    });
    const answered = send('GET', '/v1/objects').catch(() => undefined);
    const signal = await begun.promise;
    await listener.close();
    await answered;
    expect(signal.aborted).toBe(true);
    expect(telemetry.recorded('requestFailed')).toEqual([]);
  });
});

describe('the other documents', () => {
  it('tells where the registry is, as the caller reached it', async () => {
    const { json } = await send('GET', '/config.json', { headers: { host: 'localhost:9999' } });
    expect(json).toEqual({ registryUrl: 'http://localhost:9999', catalogUrl: 'http://localhost:9999', version: '1.2.3' });
  });

  it('has no login and no list of people without an issuer, and says so', async () => {
    expectProblem(await send('GET', '/login/authorize?return_to=/'), 404, 'login.not-configured');
    expectProblem(await sendJson('POST', '/login/token', { grant_type: 'authorization_code', code: 'x' }), 404, 'login.not-configured');
    const grant = await sendJson('PATCH', '/v1/admin/users/eve@example.com', { role: 'admin' });
    expectProblem(grant, 403, 'session.required');
    expect(grant.json['detail']).toContain('without --registry');
    expect(fake.asked).toEqual([]);
    expect((await send('GET', '/v1/session')).json).toMatchObject({
      kind: 'local',
      role: 'admin',
      user: { email: `anonymous@${hostname()}` },
    });
  });

  it('answers readiness with 200 or 503, live', async () => {
    expect(await send('GET', '/readyz')).toMatchObject({ status: 200, json: ready });
    report = { ready: false, roles: { http: { ready: false } }, checks: { index: { status: 'failed', code: 'index.unreachable' } } };
    expect(await send('GET', '/readyz')).toMatchObject({ status: 503, json: report });
    expect((await send('GET', '/livez')).status).toBe(200);
  });

  it('lets no answer be cached, sniffed, framed or read by a page, problems included', async () => {
    for (const path of ['/v1/buckets', '/livez', '/nothing', '/v1/objects?colour=red', '/v1/buckets/%ff']) {
      expect((await send('GET', path)).headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'cross-origin-resource-policy': 'same-origin',
      });
    }
  });
});

describe('a route without a row in the contract', () => {
  it.each([
    ['GET', '/v1/secrets'],
    ['DELETE', '/v1/objects'],
    ['POST', '/v1/buckets/:name'],
  ] as const)('is refused before anything is served: %s %s', (method, url) => {
    const server = createServer({ telemetry, rows });
    expect(() => server.route({ method, url, handler: async () => 'planted' })).toThrow(`${method} ${url} has no row in the contract`);
  });
});
