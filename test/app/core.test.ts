import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Context } from '../../src/api/contract.ts';
import { startEmbedded, type Embedded } from '../../src/adapters/embedded/server.ts';
import { createSqliteStore } from '../../src/adapters/sqlite/store.ts';
import { systemClock } from '../../src/adapters/system-clock.ts';
import { awsEnvironment } from '../../src/settings/aws.ts';
import { parseSettings } from '../../src/settings/settings.ts';
import { openControl, type OpenedControl } from '../../src/app/core.ts';

const context: Context = { actor: { kind: 'local', user: 'test', host: 'here' }, signal: new AbortController().signal };

describe('a command’s control plane', () => {
  let folder: string;
  let embedded: Embedded;

  beforeAll(async () => {
    // the SDK's own business, so not a part of any settings
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
    folder = await mkdtemp(join(tmpdir(), 'tally-core-'));
    const options = { host: '127.0.0.1', port: 0, dataDir: folder, region: 'us-east-1', bucket: 'demo', clock: systemClock };
    embedded = await startEmbedded({ ...options, log: { warn: () => {} } });
    const store = createSqliteStore({ path: join(folder, 'index.sqlite') });
    await store.setup.prepare();
    await store.close();
    const sent = await fetch(embedded.endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': 'AmazonSQS.SendMessage',
        authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0',
      },
      body: JSON.stringify({ QueueUrl: embedded.deadLetterQueueUrl, MessageBody: 'no event' }),
    });
    expect(sent.status).toBe(200);
  });

  afterAll(async () => {
    vi.unstubAllEnvs();
    await embedded.stop();
    await rm(folder, { recursive: true });
  });

  async function withOpened<Answer>(
    env: Readonly<Record<string, string>>,
    work: (opened: OpenedControl) => Promise<Answer>,
  ): Promise<Answer> {
    const parsed = parseSettings(env, () => expect.fail('no setting names a file'));
    if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
    const opened = await openControl(parsed.settings, awsEnvironment(env));
    try {
      return await work(opened);
    } finally {
      await opened.close();
    }
  }

  const embeddedEnv = () => ({ TALLY_EMBEDDED_DATA: folder, TALLY_EMBEDDED_ADDRESS: embedded.endpoint.slice('http://'.length) });

  it('is that of the embedded mode beside it where no index and no queue are set', async () => {
    const list = await withOpened(embeddedEnv(), ({ operations }) => operations.listBuckets({}, context));
    expect(list).toEqual({ items: [], unconnected: [], activity: { jobs: 0, paused_jobs: 0 } });
    const record = await withOpened(embeddedEnv(), ({ operations }) => operations.addBucket({ body: { bucket: 'demo' } }, context));
    expect(record).toMatchObject({ bucket: 'demo', created_by: 'test@here' });
    const letters = await withOpened(embeddedEnv(), ({ operations }) => operations.listDeadLetters({}, context));
    expect(letters.items).toEqual([expect.objectContaining({ size_bytes: 8 })]);
  });

  it('finds the dead-letter queue as the redrive target of the bucket queue', async () => {
    const env = {
      TALLY_INDEX_URL: `sqlite:${join(folder, 'index.sqlite')}`,
      TALLY_QUEUE_URL: embedded.queueUrl,
      AWS_ENDPOINT_URL: embedded.endpoint,
      AWS_REGION: 'us-east-1',
    };
    const {
      items: [letter],
    } = await withOpened(env, ({ operations }) => operations.listDeadLetters({}, context));
    expect(letter).toMatchObject({ size_bytes: 8 });
    const shown = await withOpened(env, ({ operations }) => operations.getDeadLetter({ params: { id: letter?.id ?? '' } }, context));
    expect(shown.body).toBe('no event');
    expect(await withOpened(env, ({ operations }) => operations.discardDeadLetters({ body: { all: true } }, context))).toEqual({
      discarded: 1,
      remaining: 0,
    });
  });

  it('says that the queue is out of reach rather than that it has no redrive target', async () => {
    const env = {
      TALLY_INDEX_URL: `sqlite:${join(folder, 'index.sqlite')}`,
      TALLY_QUEUE_URL: 'http://127.0.0.1:1/000000000000/events',
      AWS_ENDPOINT_URL: 'http://127.0.0.1:1',
    };
    await expect(withOpened(env, ({ operations }) => operations.listDeadLetters({}, context))).rejects.toMatchObject({
      code: 'queue.unreachable',
    });
  });
});
