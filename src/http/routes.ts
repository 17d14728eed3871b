/** The routes of the control plane under /v1: what each takes, which verb it calls, what it answers. OpenAPI is made from the same table. */
import { z } from 'zod';
import { bucketRecordSchema, bucketSources, enrichModes, unconnectedSchema } from '../domain/bucket.ts';
import { gapSchema } from '../domain/gaps/gap.ts';
import { jobModes } from '../domain/reindex/job.ts';
import { jobViewSchema } from '../domain/reindex/job-view.ts';
import type { Control } from '../pipeline/control/control.ts';
import { limitSchema } from '../pipeline/records/pages.ts';
import { route, type Route } from './route.ts';

/** Who asks, until callers are known. */
const CALLER = 'http';

// ── what requests hold ──

const text = z.string().exactOptional();
const limit = z
  .string()
  .regex(/^\d{1,4}$/, 'must be a whole number from 1 to 1000')
  .transform(Number)
  .pipe(limitSchema.unwrap())
  .describe('At most so many items; 100 where it is not given.')
  .exactOptional();
/** An empty one names nothing: there is no such path. */
const pathText = z.string().min(1);

const bucketParams = z.object({ bucket: pathText });
const idParams = z.object({ id: pathText });
const searchQuery = z.strictObject({ bucket: text, key: text, prefix: text, q: text, extension: text, limit, cursor: text });
const explainQuery = z.strictObject({ key: z.string({ error: 'must be given: the key to explain' }) });
const gapsQuery = z.strictObject({ bucket: text, state: gapSchema.shape.state.exactOptional(), limit, cursor: text });
const pageQuery = z.strictObject({ limit, cursor: text });
const limitQuery = z.strictObject({ limit });
const addBody = z.strictObject({
  bucket: z.string({ error: 'must be the name of a bucket' }),
  source: z.enum(bucketSources).exactOptional(),
  topicArn: text,
  enrich: z.enum(enrichModes).exactOptional(),
});
const flag = z.boolean().exactOptional();
const allowDeletes = z.int().min(0).describe('So many tombstones are allowed whatever the brake says.').exactOptional();
const reindexBody = z
  .strictObject({
    prefix: text.describe('Only keys that begin so.'),
    mode: z.enum(jobModes).describe('report: only tell the differences.').exactOptional(),
    fill: flag.describe('Documents that lack a field that a listing gives are written too.'),
    now: flag.describe('Do not wait for late events: such a job closes no gap.'),
    repair: flag.describe('Re-create the bucket’s notification first. Refused in this version.'),
    allowDeletes,
  })
  .optional();
const resumeBody = z.strictObject({ allowDeletes }).optional();
const lettersBody = z.union([z.strictObject({ ids: z.array(z.string()).min(1).max(1_000) }), z.strictObject({ all: z.literal(true) })], {
  error: 'must be {"ids": ["…"]} or {"all": true}',
});

/** A request that says nothing beyond its path. Some clients send {} where there is nothing to say. */
const plain = {
  params: z.object({}),
  query: z.strictObject({}),
  body: z.strictObject({}, { error: 'must be left out: this route takes none' }).optional(),
};

// ── what answers hold ──

const objectDocument = z
  .looseObject({
    bucket: z.string(),
    key: z.string(),
    deleted: z.boolean(),
    clock: z.number(),
    settled: z.boolean(),
    indexed_at: z.string(),
  })
  .describe('What the index holds of one key; what S3 did not say is absent.');
const explanation = z
  .looseObject({ bucket: z.string(), key: z.string(), agrees: z.union([z.boolean(), z.literal('unknown')]), sentence: z.string() })
  .describe('What the index holds, what S3 says now, the clocks that decide, and the sum of it in one sentence.');
const deadLetter = z.looseObject({ id: z.string(), sentAt: z.string(), sizeBytes: z.number() });

function pageOf(item: z.ZodType): z.ZodObject {
  return z.object({ items: z.array(item), next: z.string().describe('The next page’s cursor; absent on the last page.').optional() });
}

// ── the table ──

/** Creates the table. */
export function createRoutes(control: Control): readonly Route[] {
  return [...bucketRoutes(control), ...jobRoutes(control), ...deadLetterRoutes(control)];
}

function bucketRoutes(control: Control): readonly Route[] {
  const { buckets } = control;
  return [
    route(['GET', '/v1/objects'], 'Search the index: live objects in (bucket, key) order by UTF-8 bytes.', {
      ...plain,
      query: searchQuery,
      answer: pageOf(objectDocument),
      verb: ({ query }, signal) => control.search(query, signal),
    }),
    route(['GET', '/v1/buckets'], 'Connected buckets, and names whose events arrive unconnected.', {
      ...plain,
      answer: z.object({ items: z.array(bucketRecordSchema), unconnected: z.array(unconnectedSchema) }),
      verb: async (_request, signal) => {
        const { connected, unconnected } = await buckets.list(signal);
        return { items: connected, unconnected };
      },
    }),
    route(['POST', '/v1/buckets'], 'Connect a bucket, or change how it is connected.', {
      ...plain,
      body: addBody,
      status: 201,
      answer: bucketRecordSchema,
      verb: ({ body }, signal) => buckets.add(body, CALLER, signal),
    }),
    route(['GET', '/v1/buckets/:bucket'], 'One connected bucket.', {
      ...plain,
      params: bucketParams,
      answer: bucketRecordSchema,
      verb: ({ params }, signal) => buckets.get(params.bucket, signal),
    }),
    route(['DELETE', '/v1/buckets/:bucket'], 'Disconnect a bucket and delete its documents; the bucket itself is not touched.', {
      ...plain,
      params: bucketParams,
      status: 204,
      verb: ({ params }, signal) => buckets.remove(params.bucket, signal),
    }),
    route(['GET', '/v1/buckets/:bucket/explain'], 'What index and S3 say of a key, and why a search finds it or not.', {
      ...plain,
      params: bucketParams,
      query: explainQuery,
      answer: explanation,
      verb: ({ params, query }, signal) => control.explain(params.bucket, query.key, signal),
    }),
  ];
}

function jobRoutes(control: Control): readonly Route[] {
  const { jobs } = control;
  return [
    route(['POST', '/v1/buckets/:bucket/reindex'], 'Start a re-index or a drift report of the bucket.', {
      ...plain,
      params: bucketParams,
      body: reindexBody,
      status: 202,
      answer: jobViewSchema,
      verb: ({ params, body }, signal) => jobs.request({ ...body, ...params }, CALLER, signal),
    }),
    route(['GET', '/v1/gaps'], 'Changes that a source did not tell.', {
      ...plain,
      query: gapsQuery,
      answer: pageOf(gapSchema),
      verb: ({ query }, signal) => control.gaps(query, signal),
    }),
    route(['GET', '/v1/jobs'], 'Re-index jobs, oldest first, without their examples.', {
      ...plain,
      query: pageQuery,
      answer: pageOf(jobViewSchema),
      verb: ({ query }, signal) => jobs.list(query, signal),
    }),
    route(['GET', '/v1/jobs/:id'], 'One re-index job.', {
      ...plain,
      params: idParams,
      answer: jobViewSchema,
      verb: ({ params }, signal) => jobs.get(params.id, signal),
    }),
    route(['POST', '/v1/jobs/:id/cancel'], 'Cancel a job that has not ended.', {
      ...plain,
      params: idParams,
      answer: jobViewSchema,
      verb: ({ params }, signal) => jobs.cancel(params.id, signal),
    }),
    route(['POST', '/v1/jobs/:id/pause'], 'Pause a job that is queued or running.', {
      ...plain,
      params: idParams,
      answer: jobViewSchema,
      verb: ({ params }, signal) => jobs.pause(params.id, signal),
    }),
    route(['POST', '/v1/jobs/:id/resume'], 'Resume a paused job; one that the brake holds needs allowDeletes.', {
      ...plain,
      params: idParams,
      body: resumeBody,
      answer: jobViewSchema,
      verb: ({ params, body }, signal) => jobs.resume(params.id, { ...body }, signal),
    }),
  ];
}

function deadLetterRoutes({ deadLetters }: Control): readonly Route[] {
  return [
    route(['GET', '/v1/dead-letters'], 'Messages in the dead-letter queue, with the reasons.', {
      ...plain,
      query: limitQuery,
      answer: z.object({ items: z.array(deadLetter) }),
      verb: async ({ query }, signal) => ({ items: await deadLetters.list(query, signal) }),
    }),
    route(['GET', '/v1/dead-letters/:id'], 'One dead letter with its original body.', {
      ...plain,
      params: idParams,
      answer: deadLetter.extend({ body: z.string() }),
      verb: ({ params }, signal) => deadLetters.show(params.id, signal),
    }),
    route(['POST', '/v1/dead-letters/replay'], 'Send dead letters back to the bucket queue.', {
      ...plain,
      body: lettersBody,
      answer: z.object({ replayed: z.number() }),
      verb: async ({ body }, signal) => ({ replayed: await deadLetters.replay(idsOf(body), signal) }),
    }),
    route(['POST', '/v1/dead-letters/discard'], 'Delete dead letters for good.', {
      ...plain,
      body: lettersBody,
      answer: z.object({ discarded: z.number() }),
      verb: async ({ body }, signal) => ({ discarded: await deadLetters.discard(idsOf(body), signal) }),
    }),
  ];
}

function idsOf(letters: z.infer<typeof lettersBody>): readonly string[] | 'all' {
  return 'ids' in letters ? letters.ids : 'all';
}
