import { createConnection } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { BucketRecord } from '../../src/records/bucket.ts';
import { newWebhookToken } from '../../src/connect/sources/webhook.ts';
import { createWebhookListener } from '../../src/registry/webhook-listener.ts';
import { readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../support/fakes/ports.ts';

const QUEUE = 'http://queues/bucket';
const BODY = '{"Records":[]}';

interface Options {
  readonly requestTimeoutMs?: number;
  readonly requestsPerS?: number;
  readonly buckets?: Readonly<Record<string, Partial<BucketRecord>>>;
}

async function startWorld({ requestTimeoutMs, requestsPerS, buckets = { photos: {}, videos: {} } }: Options = {}) {
  const clock = createFakeClock();
  const { state } = createMemoryStore();
  const broken: { store?: FaultError; slowStore?: Promise<void>; queue?: FaultError } = {};
  const queues = createFakeQueues(clock);
  let reads = 0;
  const telemetry = createFakeTelemetry();
  const failed: object[] = [];
  for (const [bucket, change] of Object.entries(buckets))
    await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket, { source: 'webhook', ...change }));
  const newToken = async (bucket = 'photos'): Promise<string> => (await newWebhookToken({ state, clock }, bucket)) ?? 'none';
  const listener = createWebhookListener({
    address: { host: '127.0.0.1', port: 0 },
    queueUrl: QUEUE,
    queues: {
      async send(...asked) {
        if (broken.queue !== undefined) throw broken.queue;
        return queues.send(...asked);
      },
    },
    state: {
      ...state,
      async get(...read) {
        reads += 1;
        await broken.slowStore;
        if (broken.store !== undefined) throw broken.store;
        return state.get(...read);
      },
    },
    clock,
    telemetry,
    attempts: { failed: (attempt) => void failed.push(attempt) },
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    ...(requestsPerS !== undefined && { requestsPerS }),
  });
  const { port } = await listener.listen();
  onTestFinished(() => listener.close());
  const origin = `http://127.0.0.1:${port}`;
  return {
    clock,
    state,
    port,
    broken,
    failed,
    telemetry,
    newToken,
    messages: () => queues.messages(QUEUE),
    reads: () => reads,
    ask: (path: string, init: RequestInit = {}) => fetch(`${origin}${path}`, { method: 'POST', body: BODY, ...init }),
    post: (token: string, { bucket = 'photos', ...init }: RequestInit & { readonly bucket?: string } = {}) =>
      fetch(`${origin}/events/${bucket}`, { method: 'POST', body: BODY, headers: { authorization: `Bearer ${token}` }, ...init }),
  };
}

const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

describe('the webhook receiver', () => {
  it('takes the token as bearer, as the password of any user, and in the path, and writes the body as it is to the queue', async () => {
    const { newToken, ask, messages } = await startWorld();
    const token = await newToken();
    const bodies = ['{"Records": [ 1 ]}', '[\n]', '"ü 😀"', '{"b":1}'];
    const forms: readonly (readonly [string, Record<string, string>])[] = [
      ['/events/photos', { authorization: `Bearer ${token}` }],
      ['/events/photos', { authorization: basic('ceph', token) }],
      ['/events/photos', { authorization: basic('', token), 'content-type': 'application/cloudevents+json' }],
      [`/events/photos/${token}`, { 'content-type': 'text/plain' }],
    ];
    for (const [at, [path, headers]] of forms.entries()) expect((await ask(path, { headers, body: bodies[at]! })).status).toBe(204);
    expect(messages().map(({ body, attributes }) => [body, attributes])).toEqual(
      bodies.map((body) => [body, { 'tally-webhook': { dataType: 'String', stringValue: 'photos' } }]),
    );
  });

  it('refuses every other token, and a token of another bucket, with one answer', async () => {
    const { newToken, post, ask, messages, failed } = await startWorld();
    const [token, other] = [await newToken(), await newToken('videos')];
    const answers = [
      await post(other),
      await post(token.slice(0, -1)),
      await post('', { headers: {} }),
      await post('', { headers: { authorization: basic(token, '') } }),
      await post('', { headers: { authorization: token } }),
      await ask(`/events/photos/${other}`),
      // the path decides, so that no header lets its sender post elsewhere
      await ask(`/events/videos/${token}`, { headers: { authorization: `Bearer ${other}` } }),
      await post(token, { bucket: 'nothing' }),
      await post(token, { bucket: 'a' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 401));
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
    expect(messages()).toEqual([]);
    expect(failed).toEqual(answers.map(() => ({ address: '127.0.0.1', reason: 'webhook token unknown' })));
  });

  it('takes two tokens while one replaces the other, and not the one before them', async () => {
    const { newToken, post, state, clock } = await startWorld();
    const [first, second] = [await newToken(), await newToken()];
    expect([(await post(first)).status, (await post(second)).status]).toEqual([204, 204]);
    const third = await newToken();
    // what was known stays so for ten seconds at most, as for everything that decides by a bucket's record
    expect([(await post(third)).status, (await post(second)).status, (await post(first)).status]).toEqual([204, 204, 401]);
    expect(JSON.stringify(await readRecord(state, refs.bucket('photos')))).not.toMatch(new RegExp(`${first}|${second}|${third}`));
    // nor does a token count once its bucket gets its events another way
    await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, source: 'notification' as const });
    await clock.advance(10_000);
    expect((await post(third)).status).toBe(401);
  });

  it('answers nothing else', async () => {
    const { newToken, ask } = await startWorld();
    const token = await newToken();
    for (const path of ['/', '/livez', '/metrics', '/v1/buckets', '/events', '/openapi.json', `/events/photos/${token}/x`])
      expect([path, (await ask(path)).status]).toEqual([path, 404]);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      const answer = await ask(`/events/photos/${token}`, { method, body: null });
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST']);
    }
  });

  it('takes bodies as large as SQS does, with room for what a dead letter adds, and refuses others for good', async () => {
    const { newToken, post, messages, broken, port } = await startWorld();
    const token = await newToken();
    const largest = 1_048_576 - 4_096;
    expect((await post(token, { body: 'x'.repeat(largest) })).status).toBe(204);
    expect((await post(token, { body: 'x'.repeat(largest + 1) })).status).toBe(413);
    // of a body without a length it is found out while it comes
    const chunked = await sent(port, [
      `POST /events/photos/${token} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`,
      `${(largest + 1).toString(16)}\r\n${'x'.repeat(largest + 1)}\r\n0\r\n\r\n`,
    ]);
    expect(chunked).toMatch(/^HTTP\/1.1 413/);
    // another server of queues may take less
    broken.queue = new FaultError('message.too-large', 'MessageTooLong');
    expect((await post(token)).status).toBe(413);
    expect(messages()).toHaveLength(1);
  });

  it.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['what is not UTF-8', new Uint8Array([0x22, 0xff, 0x22])],
  ])('refuses a body of %s', async (_, body) => {
    const { newToken, post, messages } = await startWorld();
    expect((await post(await newToken(), { body })).status).toBe(400);
    expect(messages()).toEqual([]);
  });

  it('writes characters that SQS does not take as JSON escapes', async () => {
    const { newToken, post, messages } = await startWorld();
    const key = 'a\uffff\ufffe\u{10ffff}';
    expect((await post(await newToken(), { body: JSON.stringify({ key }) })).status).toBe(204);
    const [{ body } = { body: '' }] = messages();
    expect(body).toContain(String.raw`\uffff\ufffe`);
    expect(JSON.parse(body)).toEqual({ key });
  });

  it('ends a request whose body does not come', async () => {
    const { newToken, port, messages } = await startWorld({ requestTimeoutMs: 100 });
    const answer = await sent(port, [`POST /events/photos/${await newToken()} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{`]);
    expect(answer).toMatch(/^HTTP\/1.1 408/);
    expect(messages()).toEqual([]);
  });

  it('keeps room for other buckets while one fills its share with bodies that do not come', async () => {
    const { newToken, port, post } = await startWorld();
    const [token, other] = [await newToken(), await newToken('videos')];
    const length = 1_048_576 - 4_096;
    const slow = Array.from({ length: 16 }, () => createConnection(port, '127.0.0.1'));
    onTestFinished(() => slow.forEach((socket) => socket.destroy()));
    for (const socket of slow) socket.write(`POST /events/photos/${token} HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n{`);
    await expect.poll(async () => (await post(token)).status).toBe(503);
    expect((await post(token)).headers.get('retry-after')).toBe('1');
    expect((await post(other, { bucket: 'videos' })).status).toBe(204);
    for (const socket of slow) socket.destroy();
    await expect.poll(async () => (await post(token)).status).toBe(204);
  });

  it('takes so many requests of a bucket in a second, and those of another one all the same', async () => {
    const { newToken, post, clock } = await startWorld({ requestsPerS: 3 });
    const [token, other] = [await newToken(), await newToken('videos')];
    for (let count = 0; count < 3; count += 1) expect((await post(token)).status).toBe(204);
    const refused = await post(token);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect((await post(other, { bucket: 'videos' })).status).toBe(204);
    await clock.advance(1_000);
    expect((await post(token)).status).toBe(204);
  });

  it('says when to try again while the queue does not take it, and neither its address nor a token', async () => {
    const { newToken, post, ask, broken, messages, telemetry } = await startWorld();
    const token = await newToken();
    broken.queue = new FaultError('queue.unreachable', `SendMessage ${QUEUE}: refused`);
    const answer = await post(token);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await answer.text()).not.toContain(QUEUE);
    // nor is a token ever logged
    for (const path of [`photos/${token}`, `photos/${token}/more`, `videos/${token}`]) await ask(`/events/${path}`);
    const logged = (['requestFailed', 'warn', 'info', 'count'] as const).map((name) => telemetry.recorded(name));
    expect(JSON.stringify(logged)).not.toContain(token);
    delete broken.queue;
    expect((await post(token)).status).toBe(204);
    expect(messages()).toHaveLength(1);
  });

  it('goes on with the tokens that it knows while the index store does not answer', async () => {
    const { newToken, post, broken, clock } = await startWorld();
    const [token, other] = [await newToken(), await newToken('videos')];
    expect((await post(token)).status).toBe(204);
    broken.store = new FaultError('index.unreachable', 'refused');
    await clock.advance(3_600_000);
    expect((await post(token)).status).toBe(204);
    // it may be a token that has just been made
    expect((await post('wrong')).status).toBe(503);
    const unknown = await post(other, { bucket: 'videos' });
    expect([unknown.status, unknown.headers.get('retry-after')]).toEqual([503, '5']);
  });

  it('takes a token that it knows while others guess, and while it reads again whether it still counts', async () => {
    const { newToken, post, clock, broken, reads } = await startWorld();
    const token = await newToken();
    expect((await post(token)).status).toBe(204);
    await clock.advance(11_000);
    for (let count = 0; count < 100; count += 1) expect((await post('guess', { bucket: `bucket-${count}` })).status).toBe(401);
    // the store is read at most a hundred times a second for tokens that are not known
    expect((await post('guess', { bucket: 'other' })).status).toBe(503);
    expect((await post(token)).status).toBe(204);
    await clock.advance(11_000);
    const { promise, resolve } = Promise.withResolvers<void>();
    broken.slowStore = promise;
    const before = reads();
    const answers = Array.from({ length: 120 }, () => post(token));
    expect((await Promise.race(answers)).status).toBe(204);
    resolve();
    expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([204]));
    expect(reads() - before).toBe(1);
  });

  it('counts what it takes, refuses and puts off', async () => {
    const { newToken, ask, post, telemetry, broken } = await startWorld();
    const token = await newToken();
    await post(token);
    // RustFS asks every few seconds whether something is there
    await ask('/', { method: 'HEAD', body: null });
    await post('wrong');
    broken.queue = new FaultError('queue.unreachable', 'refused');
    await post(token);
    await expect
      .poll(() => telemetry.labels('tally_webhook_requests_total'))
      .toEqual([{ result: 'queued' }, { result: 'refused' }, { result: 'later' }]);
  });
});

/** What the server answers to these bytes until it closes the connection, or has answered. */
function sent(port: number, parts: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1');
    let text = '';
    socket.on('data', (data) => {
      text += String(data);
      socket.end();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)));
    for (const part of parts) socket.write(part);
  });
}
