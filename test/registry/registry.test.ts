import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Context, Operations } from '../../src/registry/contract/contract.ts';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createRegistryOperations } from '../../src/cli/client/registry.ts';
import { createFakeControl, nastyKey, type FakeControl } from '../support/fakes/control.ts';
import { listenControlPlane, type ControlPlane } from '../support/servers/control-plane.ts';
import { startScripted, type Script, type ScriptedAnswer } from '../support/servers/scripted.ts';

let fake: FakeControl;
let listener: ControlPlane;
let remote: Operations;

beforeEach(async () => {
  fake = createFakeControl();
  listener = await listenControlPlane({ operations: fake.checked });
  remote = createRegistryOperations(listener);
});

afterEach(() => listener.close());

type Call = (operations: Operations) => Promise<unknown>;

const context: Context = { actor: { kind: 'local', user: 'http', host: 'here' }, signal: new AbortController().signal };
const params = { bucket: 'photos' };
const search = { bucket: 'photos', key: nastyKey, prefix: 'a+b/', q: 'annual report', extension: 'pdf', limit: 7, cursor: 'c_d' };
const reindex = { prefix: 'ü/', mode: 'report', fill: true, now: true, repair: false } as const;
const added = { bucket: 'photos', source: 'topic', topic_arn: 'arn:aws:sns:eu-west-1:123456789012:uploads', enrich: 'head' } as const;

/** One for each form of a request: the contract makes all operations from its rows by the same code. */
const calls: readonly (readonly [name: string, call: Call])[] = [
  ['searchObjects', (operations) => operations.searchObjects({ query: search }, context)],
  ['searchObjects for everything', (operations) => operations.searchObjects({}, context)],
  ['explainObject', (operations) => operations.explainObject({ params, query: { key: nastyKey } }, context)],
  ['addBucket', (operations) => operations.addBucket({ body: added }, context)],
  ['startReindex', (operations) => operations.startReindex({ params, body: reindex }, context)],
  ['startReindex of a whole bucket', (operations) => operations.startReindex({ params }, context)],
  ['changeJob', (operations) => operations.changeJob({ params: { id: 'job/1 ?#' }, body: { state: 'cancelled' } }, context)],
];

describe('a registry by its address', () => {
  it.each(calls)('asks and answers what the operation itself does: %s', async (_, call) => {
    const direct = createFakeControl();
    const expected = await call(direct.operations);
    expect(await call(remote)).toEqual(expected);
    expect(fake.asked).toEqual(direct.asked);
  });

  it('rejects as the operation itself does', async () => {
    const call: Call = (operations) => operations.searchObjects({}, context);
    const refusal = new RequestError('job.conflict', 'job-0 of photos is running', { job_id: 'job-0', waiting: 3 });
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

  it.each(['', '.', '..'])('asks nothing about %j, which would lead to another path', async (name) => {
    for (const call of [
      () => remote.removeBucket({ params: { bucket: name } }, context),
      () => remote.changeJob({ params: { id: name }, body: { state: 'cancelled' } }, context),
      () => remote.getDeadLetter({ params: { id: name } }, context),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'request.not-found' });
    }
    expect(fake.asked).toEqual([]);
  });

  it('rejects with the signal’s reason, and the operation ends as well', async () => {
    const asked = Promise.withResolvers<AbortSignal | undefined>();
    const ended = Promise.withResolvers<void>();
    fake.nextDoes((signal) => {
      signal?.addEventListener('abort', () => ended.resolve());
      asked.resolve(signal);
      return new Promise(() => undefined);
    });
    const leaving = new AbortController();
    const answer = remote.getJob({ params: { id: 'job-1' } }, { ...context, signal: leaving.signal });
    const signal = await asked.promise;
    leaving.abort(new Error('enough'));
    await expect(answer).rejects.toThrow('enough');
    await ended.promise;
    expect(signal?.aborted).toBe(true);
  });
});

describe('where no registry of this version answers', () => {
  const operationsAt = async (script: Script): Promise<Operations> => createRegistryOperations(await startScripted(script));

  it('says that nobody listens', async () => {
    const server = await startScripted(() => undefined);
    await server.close();
    await expect(createRegistryOperations(server).listJobs({}, context)).rejects.toMatchObject({
      code: 'registry.unreachable',
      reason: expect.stringContaining('ECONNREFUSED'),
    });
  });

  const later = { type: 'about:blank', title: 'Conflict', status: 409, detail: 'the moon is full', code: 'moon.full' };
  it.each<[string, ScriptedAnswer]>([
    ['a page', { body: '<html>' }],
    ['an error page', { status: 502, body: '<html>bad gateway' }],
    ['nothing', {}],
    ['other JSON', { body: '{"items":7}' }],
    ['a problem of a later version', { status: 409, headers: { 'content-type': 'application/problem+json' }, body: later }],
  ])('says what is answered instead: %s', async (_, answer) => {
    const operations = await operationsAt(() => answer);
    await expect(operations.listJobs({}, context)).rejects.toMatchObject({
      code: 'registry.unknown-answer',
      reason: expect.stringContaining('GET /v1/jobs'),
    });
  });

  it.each([200, 202])('takes a %i for what it asked only if the operation answers with it', async (status) => {
    const operations = await operationsAt(() => ({ status, body: '' }));
    const asked = [operations.revokeApiKey({ params: { id: 'a'.repeat(16) } }, context), operations.removeBucket({ params }, context)];
    for (const each of asked) await expect(each).rejects.toMatchObject({ code: 'registry.unknown-answer' });
  });

  it('follows no redirect: it may lead anywhere', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const server = await startScripted(() => ({ status, headers: { location: '/elsewhere' } }));
      const removed = createRegistryOperations(server).removeBucket({ params }, context);
      await expect(removed).rejects.toMatchObject({ code: 'registry.unreachable' });
      expect(server.asked.map(({ path }) => path)).toEqual(['/v1/buckets/photos']);
    }
  });

  it('says that the connection broke in the middle of an answer', async () => {
    const operations = await operationsAt(() => ({ headers: { 'content-length': '100' }, body: '{"items":', isCut: true }));
    await expect(operations.listJobs({}, context)).rejects.toMatchObject({ code: 'registry.unreachable' });
  });
});
