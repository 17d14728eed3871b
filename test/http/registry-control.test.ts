import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FaultError } from '../../src/domain/fault.ts';
import { RequestError } from '../../src/domain/request-error.ts';
import { createRegistryControl } from '../../src/http/client/registry-control.ts';
import { createControlPlane } from '../../src/http/control-plane.ts';
import type { Listener } from '../../src/http/server.ts';
import type { Control } from '../../src/pipeline/control/control.ts';
import {
  bucketRecord,
  createFakeControl,
  explanation,
  nastyKey,
  objectDocument,
  runningJob,
  type FakeControl,
} from '../support/fakes/control.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

let fake: FakeControl;
let listener: Listener;
let remote: Control;

beforeEach(async () => {
  fake = createFakeControl();
  listener = createControlPlane({
    address: { host: '127.0.0.1', port: 0 },
    control: fake.control,
    readiness: { read: () => ({ ready: true, roles: {}, checks: {} }) },
    metrics: { metricsText: async () => '', contentType: 'text/plain' },
    telemetry: createFakeTelemetry(),
    clock: createFakeClock(),
    version: '1.2.3',
  });
  const { port } = await listener.listen();
  remote = createRegistryControl(`http://127.0.0.1:${port}`);
});

afterEach(() => listener.close());

type Call = (control: Control) => Promise<unknown>;

const search = { bucket: 'photos', key: nastyKey, prefix: 'a+b/', q: 'annual report', extension: 'pdf', limit: 7, cursor: 'c&d' };
const reindex = { bucket: 'photos', prefix: 'ü/', mode: 'report', fill: true, now: true, repair: false, allowDeletes: 5 } as const;

const calls: readonly (readonly [name: string, call: Call])[] = [
  ['search', (control) => control.search(search)],
  ['search for everything', (control) => control.search({})],
  ['explain', (control) => control.explain('photos', nastyKey)],
  ['buckets.list', (control) => control.buckets.list()],
  ['buckets.get', (control) => control.buckets.get('photos')],
  ['buckets.add', (control) => control.buckets.add({ bucket: 'photos', source: 'topic', topicArn: 'arn:x', enrich: 'head' }, 'http')],
  ['buckets.remove', (control) => control.buckets.remove('photos')],
  ['gaps', (control) => control.gaps({ bucket: 'photos', state: 'closing', limit: 3, cursor: 'c' })],
  ['jobs.request', (control) => control.jobs.request(reindex, 'http')],
  ['jobs.request of a whole bucket', (control) => control.jobs.request({ bucket: 'photos' }, 'http')],
  ['jobs.get', (control) => control.jobs.get('job-1')],
  ['jobs.list', (control) => control.jobs.list({ limit: 3, cursor: 'c' })],
  ['jobs.cancel', (control) => control.jobs.cancel('job/1 ?#')],
  ['jobs.pause', (control) => control.jobs.pause('job-1')],
  ['jobs.resume', (control) => control.jobs.resume('job-1', { allowDeletes: 20_000 })],
  ['deadLetters.list', (control) => control.deadLetters.list({ limit: 3 })],
  ['deadLetters.show', (control) => control.deadLetters.show('letter-1')],
  ['deadLetters.replay', (control) => control.deadLetters.replay(['a', 'b'])],
  ['deadLetters.discard', (control) => control.deadLetters.discard('all')],
];

describe('a registry by its address', () => {
  it.each(calls)('asks and answers what the verb itself does: %s', async (_, call) => {
    const direct = createFakeControl();
    const expected = await call(direct.control);
    expect(await call(remote)).toEqual(expected);
    expect(fake.asked).toEqual(direct.asked);
  });

  it.each<[string, unknown, Call]>([
    ['a running job', runningJob, (control) => control.jobs.get('job-1')],
    [
      'a bucket with all its fields',
      { ...bucketRecord, topicArn: 'arn:x', lastEventAtMs: 7, lastReindexAtMs: 8 },
      (control) => control.buckets.get('photos'),
    ],
    [
      'a tombstone',
      { items: [{ ...objectDocument, deleted: true, deleted_at: '2026-01-02T03:04:05.000Z' }] },
      (control) => control.search({}),
    ],
    [
      'an explanation with S3’s answer',
      {
        ...explanation,
        storage: { state: { present: true, etag: 'e', sizeBytes: 7, storageClass: 'GLACIER' }, observedAt: '2026-01-02T03:04:05.000Z' },
      },
      (control) => control.explain('photos', 'k'),
    ],
    [
      'an explanation with S3’s fault',
      { ...explanation, agrees: 'unknown', storage: { fault: { code: 'object.denied', reason: '403' }, advice: 'Allow it.' } },
      (control) => control.explain('photos', 'k'),
    ],
  ])('answers %s as it is', async (_, answer, call) => {
    fake.nextDoes(async () => answer);
    expect(await call(remote)).toEqual(answer);
  });

  it.each(calls)('rejects as the verb itself does: %s', async (_, call) => {
    const refusal = new RequestError('job.conflict', 'job-0 of photos is running', { jobId: 'job-0', waiting: 3 });
    fake.nextDoes(() => Promise.reject(refusal));
    const error: unknown = await call(remote).catch((thrown: unknown) => thrown);
    expect(error).toEqual(refusal);
    expect(error).toMatchObject({ code: 'job.conflict', extra: refusal.extra });
    const fault = new FaultError('index.unreachable', 'connect ECONNREFUSED');
    fake.nextDoes(() => Promise.reject(fault));
    const thrown: unknown = await call(remote).catch((reason: unknown) => reason);
    expect(thrown).toBeInstanceOf(FaultError);
    expect(thrown).toMatchObject({ code: fault.code, reason: fault.reason });
  });

  it('tells that something went wrong there that nobody foresaw', async () => {
    fake.nextDoes(() => Promise.reject(new TypeError('secret')));
    await expect(remote.jobs.list({})).rejects.toMatchObject({
      code: 'internal.unexpected',
      reason: expect.not.stringContaining('secret'),
    });
  });

  it.each(['', '.', '..'])('asks nothing about %j, which would lead to another path', async (name) => {
    for (const call of [() => remote.buckets.remove(name), () => remote.jobs.cancel(name), () => remote.deadLetters.show(name)]) {
      await expect(call()).rejects.toMatchObject({ code: 'request.not-found' });
    }
    expect(fake.asked).toEqual([]);
  });

  it('rejects with the signal’s reason, and the verb ends as well', async () => {
    const asked = Promise.withResolvers<AbortSignal | undefined>();
    fake.nextDoes((signal) => {
      asked.resolve(signal);
      return new Promise(() => undefined);
    });
    const leaving = new AbortController();
    const answer = remote.jobs.get('job-1', leaving.signal);
    const signal = await asked.promise;
    leaving.abort(new Error('enough'));
    await expect(answer).rejects.toThrow('enough');
    await expect.poll(() => signal?.aborted).toBe(true);
  });
});

describe('where no registry of this version answers', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  async function somethingElse(handler: RequestListener): Promise<Control> {
    const server = createServer(handler);
    servers.push(server);
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return createRegistryControl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }

  it('says that nobody listens', async () => {
    const control = await somethingElse(() => undefined);
    const [server] = servers.splice(0);
    await new Promise((resolve) => {
      server?.close(resolve);
    });
    await expect(control.jobs.list({})).rejects.toMatchObject({
      code: 'registry.unreachable',
      reason: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it.each<[string, RequestListener]>([
    ['a page', (_request, response) => void response.end('<html>')],
    ['an error page', (_request, response) => void response.writeHead(502).end('<html>bad gateway')],
    ['nothing', (_request, response) => void response.end()],
    ['other JSON', (_request, response) => void response.end('{"items":7}')],
    [
      'a problem of a later version',
      (_request, response) => {
        const problem = { type: 'about:blank', title: 'Conflict', status: 409, detail: 'the moon is full', code: 'moon.full' };
        response.writeHead(409, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
      },
    ],
  ])('says what is answered instead: %s', async (_, handler) => {
    const control = await somethingElse(handler);
    await expect(control.jobs.list({})).rejects.toMatchObject({
      code: 'registry.unknown-answer',
      reason: expect.stringContaining('GET /v1/jobs'),
    });
  });

  it('follows no redirect: it may lead anywhere', async () => {
    const asked: (string | undefined)[] = [];
    const control = await somethingElse((request, response) => {
      asked.push(request.url);
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    await expect(control.buckets.remove('photos')).rejects.toMatchObject({ code: 'registry.unreachable' });
    expect(asked).toEqual(['/v1/buckets/photos']);
  });

  it('says that the connection broke in the middle of an answer', async () => {
    const control = await somethingElse((_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"items":', () => response.destroy());
    });
    await expect(control.jobs.list({})).rejects.toMatchObject({ code: 'registry.unreachable' });
  });
});
