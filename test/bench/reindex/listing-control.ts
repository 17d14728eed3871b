/** What a bench tells the listing server in another process: buckets whose listing is rendered beforehand, S3's latency, its counts. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { compareKeys } from '../../../src/base/key-order.ts';
import { createRandom } from '../../support/random/seeded.ts';
import { firstOf, type Contents } from './listing/contents.ts';
import { createKeySpace, keyShapes } from './listing/key-space.ts';
import { END, headOf, objectXml, urlEncoded, type PageRequest } from './listing/listing-page.ts';
import { questionOf, type ListingServer, type Question, type RequestCounts } from './listing/listing-server.ts';
import { applyDrift } from './drift.ts';

/** Each answer comes after a time between mean − jitter and mean + jitter. */
const latencySchema = z.object({ meanMs: z.number(), jitterMs: z.number() });
export type Latency = z.infer<typeof latencySchema>;

const bucketSchema = z.object({
  name: z.string(),
  shape: z.enum(keyShapes).default('flat'),
  count: z.number().int().default(0),
  /** Every n-th object differs from the computed one: see drift.ts. */
  driftEvery: z.number().int().positive().exactOptional(),
  /** Whether its listing is rendered at once. The bucket does not change then. */
  isPrepared: z.boolean().default(false),
});
const controlSchema = z.object({
  buckets: z.array(bucketSchema).default([]),
  latency: latencySchema.nullable().exactOptional(),
  resetCounts: z.boolean().default(false),
});
export type Control = z.input<typeof controlSchema>;

/** No bucket has such a name. */
const CONTROL_PATH = '/-/control';
const PAGE_MAX = 1_000;
const PREPARED_AT_ONCE = 1_000;

/** Tells a server in another process what to do from now on; answers its counts of before. */
export async function controlListingServer(url: string, told: Control): Promise<RequestCounts> {
  const answered = await fetch(`${url}${CONTROL_PATH}`, { method: 'POST', body: JSON.stringify(told) });
  if (answered.status !== 200) throw new Error(`the listing server answered ${answered.status}: ${await answered.text()}`);
  return (await answered.json()) as RequestCounts;
}

/** Has the server do what it is told by {@link controlListingServer}. */
export function obey(server: ListingServer): void {
  const prepared = new Map<string, PreparedPages>();
  const random = createRandom(80);
  let latency: Latency | undefined;
  let preparedLists = 0;

  async function passLatency(): Promise<void> {
    if (latency !== undefined) await delay(latency.meanMs + latency.jitterMs * (random.integer(0, 2_000) / 1_000 - 1));
  }

  async function control(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const told = controlSchema.parse(JSON.parse(await text(incoming)));
    for (const { name, shape, count, driftEvery, isPrepared } of told.buckets) {
      const contents = server.createBucket(name, shape, count);
      prepared.delete(name);
      if (driftEvery !== undefined) applyDrift(contents, createKeySpace(shape, count), driftEvery);
      if (isPrepared) prepared.set(name, preparePages(contents));
    }
    if (told.latency !== undefined) latency = told.latency ?? undefined;
    const counts = server.counts();
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ...counts, list: counts.list + preparedLists }));
    if (!told.resetCounts) return;
    server.resetCounts();
    preparedLists = 0;
  }

  async function answerPrepared(outgoing: ServerResponse, question: Question, pages: PreparedPages): Promise<void> {
    preparedLists += 1;
    await passLatency();
    const { body } = pages({ ...question, after: question.key });
    outgoing
      .writeHead(200, { 'content-type': 'application/xml', 'content-length': body.byteLength, 'x-amz-request-id': 'BENCH' })
      .end(body);
  }

  server.beforeAnswer(passLatency);
  server.setForger((incoming, outgoing) => {
    if (incoming.url === CONTROL_PATH) {
      control(incoming, outgoing).catch((error: unknown) => outgoing.writeHead(400).end(String(error)));
      return true;
    }
    const question = questionOf(incoming, PAGE_MAX);
    const pages = question?.operation === 'list' && question.isEncoded ? prepared.get(question.bucket) : undefined;
    if (question === undefined || pages === undefined) return false;
    void answerPrepared(outgoing, question, pages);
    return true;
  });
}

/** Renders pages as {@link renderPage} does, encoded, of contents that no longer change. */
type PreparedPages = (request: Omit<PageRequest, 'isEncoded'>) => { readonly body: Buffer; readonly keys: number };

/**
 * Renders all objects now, so that a page is a part of what is in memory: where a listing is measured beside what reads it, the
 * server should cost as little as one of another machine. It takes some 350 bytes for each object.
 */
function preparePages(contents: Contents): PreparedPages {
  const keys: string[] = [];
  const offsets: number[] = [0];
  const chunks: Buffer[] = [];
  for (let after = '', isTruncated = true; isTruncated; after = keys.at(-1) ?? '') {
    const slice = contents.slice({ prefix: '', after, limit: PREPARED_AT_ONCE });
    ({ isTruncated } = slice);
    for (const entry of slice.entries) {
      const chunk = Buffer.from(objectXml(entry, urlEncoded));
      keys.push(entry.key);
      offsets.push((offsets.at(-1) ?? 0) + chunk.byteLength);
      chunks.push(chunk);
    }
    // thousands of small buffers as one
    chunks.splice(-slice.entries.length, slice.entries.length, Buffer.concat(chunks.slice(-slice.entries.length)));
  }
  const objects = Buffer.concat(chunks);

  return (request) => {
    const { prefix, after, limit } = request;
    const from = firstOf(keys.length, (at) => compareKeys(keys[at] ?? '', after) > 0 && compareKeys(keys[at] ?? '', prefix) >= 0);
    const end = from + firstOf(keys.length - from, (at) => !(keys[from + at] ?? '').startsWith(prefix));
    const to = Math.min(end, from + limit);
    const facts = { keys: to - from, isTruncated: to < end, last: keys[to - 1] };
    const head = headOf({ ...request, isEncoded: true }, facts);
    return { body: Buffer.concat([Buffer.from(head), objects.subarray(offsets[from], offsets[to]), Buffer.from(END)]), keys: to - from };
  };
}
