/**
 * A store of one's own, from its post to the index: Tally as a process, a real server of queues alone, and clients that send as stores
 * do. Each 2xx is indexed, whatever is killed.
 */
import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { bodyOf, messagesOf } from '../support/event-fixtures.ts';
import { createTestAws, until, type TestAws } from '../support/servers/aws.ts';
import { runTally, startDaemon, type Daemon, type Environment } from '../support/servers/daemon.ts';
import { elasticMqProgram, startElasticMq, type ElasticMq } from '../support/servers/elasticmq.ts';
import { unusedPort } from '../support/servers/unused-port.ts';
import { noteNotRun } from '../support/not-run.ts';
import { bucketDifference, indexed, openIndex, type TestIndex } from '../support/worlds/flow.ts';
import { startQueueWorld, type QueueWorld } from '../support/worlds/queue.ts';

if (elasticMqProgram === undefined) noteNotRun('a store of one’s own', 'ElasticMQ (a program that starts it, by TALLY_TEST_ELASTICMQ)');

const TIMEOUT_MS = 600_000;
const PATIENCE_MS = 300_000;

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
}

describe.skipIf(elasticMqProgram === undefined)('a store of one’s own', { timeout: TIMEOUT_MS }, () => {
  let queues: ElasticMq;
  let world: QueueWorld;
  let index: TestIndex;
  let sqs: TestAws;
  let env: Environment;
  let daemon: Daemon;
  let url = '';
  let token = '';

  const queueUrl = (name: string): string => `${queues.url}/000000000000/${name}`;
  const record = (key: string) => ({
    Records: [{ eventName: 'ObjectCreated:Put', s3: { bucket: { name: world.bucket }, object: { key } } }],
  });

  async function post(body: unknown, { bearer = token } = {}): Promise<Answer> {
    const answer = await fetch(url, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { authorization: `Bearer ${bearer}` },
    });
    return { status: answer.status, retryAfter: answer.headers.get('retry-after') };
  }

  const isTaken = async (body: unknown): Promise<boolean> =>
    post(body).then(
      ({ status }) => status === 204,
      () => false,
    );

  /** Sends it until it is taken, as stores do that keep their events on disk. Throws when it is refused for good. */
  const postAgain = (body: unknown): Promise<void> =>
    until(
      'the event is taken',
      async () => {
        const { status } = await post(body).catch(() => ({ status: 503 }));
        if (status >= 400 && status < 500 && status !== 429) throw new Error(`${status}: ${JSON.stringify(body)}`);
        return status === 204;
      },
      PATIENCE_MS,
    );

  const converged = (): Promise<void> =>
    until('index and bucket agree', async () => (await bucketDifference(daemon, world)) === undefined, PATIENCE_MS);

  async function startTally(): Promise<void> {
    daemon = await startDaemon(env);
  }

  beforeAll(async () => {
    [queues, world, index] = await Promise.all([startElasticMq(elasticMqProgram ?? ''), startQueueWorld(), openIndex('sqlite')]);
    sqs = createTestAws(queues.url);
    env = {
      ...index.env,
      AWS_ENDPOINT_URL_S3: world.s3.url,
      TALLY_QUEUE_URL: queueUrl('tally-bucket-events'),
      TALLY_EVENTS_ADDRESS: `127.0.0.1:${await unusedPort()}`,
      TALLY_INGEST_WAIT_S: '1',
      TALLY_INGEST_VISIBILITY_S: '10',
    };
  }, TIMEOUT_MS);
  afterAll(async () => {
    await daemon?.kill();
    await Promise.all([queues[Symbol.asyncDispose](), world.close(), index.close()]);
  }, TIMEOUT_MS);

  it('is connected after a setup that makes two queues, and by no other source', async () => {
    const first = await runTally(['setup', '--apply', '--json'], env);
    expect(first.stderr).not.toMatch(/STS|SNS/);
    expect(JSON.parse(first.stdout)).toMatchObject({
      made: [expect.stringContaining('dead-letters'), expect.stringContaining('bucket-events')],
    });

    await startTally();
    const add = (source?: string) =>
      daemon.request('POST', '/v1/buckets', { bucket: world.bucket, reindex: false, ...(source && { source }) });
    await until('the registry is ready', async () => (await add()).status === 409, PATIENCE_MS);
    expect((await add()).body).toMatchObject({ code: 'connect.blocked', detail: expect.stringContaining('--source webhook') as unknown });
    const { status, body } = await add('webhook');
    expect([200, 201]).toContain(status);
    ({ url, token } = (body as { readonly webhook: { readonly url: string; readonly token: string } }).webhook);
    expect((await add('webhook')).body).not.toHaveProperty('webhook');
    await daemon.ready();
  });

  it('has a token that another replaces, while both are valid, and neither is told', async () => {
    const body = record('nothing.jpg');
    const rotated = await daemon.request('POST', `/v1/buckets/${world.bucket}/token`);
    const next = (rotated.body as { readonly token: string }).token;
    await until('the new token is valid', async () => (await post(body, { bearer: next })).status === 204, PATIENCE_MS);
    expect((await post(body)).status).toBe(204);
    const told = daemon.log.map((line) => JSON.stringify(line)).join('\n');
    for (const secret of [token, next]) expect(told).not.toContain(secret);
    token = next;
  });

  it('is believed in nothing: what any store posts of a key makes its document what the store answers', async () => {
    // a move to another tier changes nothing that is indexed
    const messages = messagesOf('other-stores').filter(({ operation }) => !operation.includes('tier'));
    expect(new Set(messages.map(({ provenance }) => provenance.store)).size).toBe(10);
    const posts = messages.flatMap((message, at) => {
      const { store } = message.provenance;
      const key = `${store}/${at} ä+b.jpg`;
      world.put(key);
      // some send each event twice
      return Array.from({ length: store === 'Ceph' ? 2 : 1 }, () => bodyOf(message, { bucket: world.bucket, key }));
    });
    // Tally does not believe a bucket that shows nothing any more
    world.put('stays.jpg');
    await Promise.all([...posts, record('stays.jpg')].map(postAgain));
    await converged();
    // the same bodies, most of which say that an object was created
    for (const key of world.objects().keys()) if (key !== 'stays.jpg') world.remove(key);
    await Promise.all(posts.map(postAgain));
    await converged();
    expect([...world.objects().keys()]).toEqual(['stays.jpg']);
  });

  it('loses nothing that was taken, whatever is killed', async () => {
    const taken = new Set<string>();
    let asked = 0;
    const over = new AbortController();
    /** One that sends each event once, and keeps what was answered. */
    async function sendsOnce(name: string): Promise<void> {
      for (let at = 0; !over.signal.aborted; at += 1) {
        const key = `${name}/${at}`;
        world.put(key);
        asked += 1;
        if (await isTaken(record(key))) taken.add(key);
        else await until('the receiver answers', async () => over.signal.aborted || isTaken(record('nothing.jpg')), PATIENCE_MS);
      }
    }
    /** One that sends each until it is taken. */
    async function sendsAgain(name: string): Promise<void> {
      for (let at = 0; !over.signal.aborted; at += 1) {
        const key = `${name}/${at}`;
        world.put(key);
        await postAgain(record(key));
        taken.add(key);
      }
    }
    /** One that is killed while it sends. */
    async function dies(): Promise<void> {
      const { hostname, port, pathname } = new URL(url);
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      const head = `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\nContent-Length: 1000\r\n\r\n`;
      socket.write(`${head}{"Records":[`);
      socket.destroy();
    }
    const more = (count: number): Promise<void> => {
      const from = taken.size;
      return until('more events are taken', async () => taken.size >= from + count, PATIENCE_MS);
    };
    const senders = Promise.all([sendsOnce('once-a'), sendsOnce('once-b'), sendsAgain('again-a'), sendsAgain('again-b')]);
    await more(40);
    await daemon.kill();
    await startTally();
    await dies();
    await more(40);
    await queues.kill();
    const refused = await post(record('nothing.jpg'));
    expect(refused).toEqual({ status: 503, retryAfter: '5' });
    await queues.up();
    await more(40);
    // a start of the queue server takes five seconds of CPU; above, each of the two is killed alone
    if (isLong) {
      await Promise.all([daemon.kill(), queues.kill()]);
      await queues.up();
      await startTally();
      await more(10);
    }
    over.abort();
    await senders;
    expect(asked).toBeGreaterThan(0);
    const all = world.objects();
    const areThere = async (): Promise<boolean> => {
      const found = await indexed(daemon, world.bucket);
      return found !== undefined && [...taken].every((key) => found.get(key) === all.get(key));
    };
    await until('all that was taken is indexed', areThere, PATIENCE_MS);
  });

  it('has what is no event among the dead letters, and nothing else of all that was sent', async () => {
    expect((await post('{"hello":1}')).status).toBe(204);
    expect(await sqs.takeBodies(queueUrl('tally-dead-letters'), 1)).toEqual(['{"hello":1}']);
    expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  });
});
