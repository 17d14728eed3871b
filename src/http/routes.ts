/** The routes of the control plane under /v1: each parses its request and calls one verb. OpenAPI is made from the same table. */
import { z } from 'zod';
import { bucketSources, enrichModes } from '../domain/bucket.ts';
import { RequestError } from '../domain/request-error.ts';
import { jobModes } from '../domain/reindex-job.ts';
import type { Control } from '../pipeline/control.ts';

/** Who asks, until callers are known. */
const CALLER = 'http';

const text = z.string().exactOptional();
const limit = z
  .string()
  .regex(/^\d{1,4}$/, 'must be a whole number from 1 to 1000')
  .transform(Number)
  .exactOptional();
const noQuery = z.strictObject({});
const bucketParams = z.object({ bucket: z.string() });
const idParams = z.object({ id: z.string() });
const searchQuery = z.strictObject({ bucket: text, key: text, prefix: text, q: text, extension: text, limit, cursor: text });
const explainQuery = z.strictObject({ key: z.string({ error: 'must be given: the key to explain' }) });
const gapsQuery = z.strictObject({ bucket: text, state: z.enum(['open', 'closing', 'closed']).exactOptional(), limit, cursor: text });
const pageQuery = z.strictObject({ limit, cursor: text });
const limitQuery = z.strictObject({ limit });
const addBody = z.strictObject({
  bucket: z.string({ error: 'must be the name of a bucket' }),
  source: z.enum(bucketSources).exactOptional(),
  topicArn: text,
  enrich: z.enum(enrichModes).exactOptional(),
});
const reindexBody = z.strictObject({ prefix: text, mode: z.enum(jobModes).exactOptional() }).optional();
const lettersBody = z.union([z.strictObject({ ids: z.array(z.string()).min(1).max(1_000) }), z.strictObject({ all: z.literal(true) })], {
  error: 'must be {"ids": ["…"]} or {"all": true}',
});

export interface RouteRequest {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With `:name` for parameters. */
  readonly path: string;
  readonly summary: string;
  readonly query: z.ZodObject;
  readonly body?: z.ZodType;
  readonly status: number;
  /** Answers the body of the response; undefined: none. */
  readonly run: (request: RouteRequest, signal: AbortSignal) => Promise<unknown>;
}

/** Creates the table. The verbs throw RequestErrors and faults; so does a request that is not as its schemas say. */
export function createRoutes(control: Control): readonly Route[] {
  const { buckets, jobs, deadLetters } = control;
  return [
    get('/v1/objects', 'Search the index: live objects in (bucket, key) order by UTF-8 bytes.', searchQuery, ({ query }, signal) =>
      control.search(parse(searchQuery, query), signal),
    ),
    get('/v1/buckets', 'Connected buckets, and names whose events arrive unconnected.', noQuery, async (_request, signal) => {
      const { connected, unconnected } = await buckets.list(signal);
      return { items: connected, unconnected };
    }),
    get('/v1/buckets/:bucket', 'One connected bucket.', noQuery, ({ params }, signal) =>
      buckets.get(parse(bucketParams, params).bucket, signal),
    ),
    get(
      '/v1/buckets/:bucket/explain',
      'What index and S3 say of a key, and why a search finds it or not.',
      explainQuery,
      ({ params, query }, signal) => control.explain(parse(bucketParams, params).bucket, parse(explainQuery, query).key, signal),
    ),
    get('/v1/gaps', 'Changes that a source did not tell.', gapsQuery, ({ query }, signal) => control.gaps(parse(gapsQuery, query), signal)),
    get('/v1/jobs', 'Re-index jobs, oldest first.', pageQuery, ({ query }, signal) => jobs.list(parse(pageQuery, query), signal)),
    get('/v1/jobs/:id', 'One re-index job.', noQuery, ({ params }, signal) => jobs.get(parse(idParams, params).id, signal)),
    get('/v1/dead-letters', 'Messages in the dead-letter queue, with the reasons.', limitQuery, async ({ query }, signal) => ({
      items: await deadLetters.list(parse(limitQuery, query), signal),
    })),
    get('/v1/dead-letters/:id', 'One dead letter with its original body.', noQuery, ({ params }, signal) =>
      deadLetters.show(parse(idParams, params).id, signal),
    ),
    change('POST /v1/buckets', 'Connect a bucket, or change how it is connected.', { body: addBody, status: 201 }, ({ body }, signal) =>
      buckets.add(parse(addBody, body), CALLER, signal),
    ),
    change(
      'DELETE /v1/buckets/:bucket',
      'Disconnect a bucket and delete its documents; the bucket itself is not touched.',
      { status: 204 },
      ({ params }, signal) => buckets.remove(parse(bucketParams, params).bucket, signal),
    ),
    change(
      'POST /v1/buckets/:bucket/reindex',
      'Queue a re-index of the bucket.',
      { body: reindexBody, status: 202 },
      ({ params, body }, signal) =>
        jobs.request({ ...parse(reindexBody, body ?? undefined), ...parse(bucketParams, params) }, CALLER, signal),
    ),
    change('POST /v1/jobs/:id/cancel', 'Cancel a job that has not ended.', { status: 200 }, ({ params }, signal) =>
      jobs.cancel(parse(idParams, params).id, signal),
    ),
    change(
      'POST /v1/dead-letters/replay',
      'Send dead letters back to the bucket queue.',
      { body: lettersBody, status: 200 },
      async ({ body }, signal) => ({
        replayed: await deadLetters.replay(idsOf(parse(lettersBody, body)), signal),
      }),
    ),
    change(
      'POST /v1/dead-letters/discard',
      'Delete dead letters for good.',
      { body: lettersBody, status: 200 },
      async ({ body }, signal) => ({
        discarded: await deadLetters.discard(idsOf(parse(lettersBody, body)), signal),
      }),
    ),
  ];
}

function get(path: string, summary: string, ...[query, run]: [z.ZodObject, Route['run']]): Route {
  return { method: 'GET', path, summary, query, status: 200, run };
}

function change(
  name: `${'POST' | 'DELETE'} /${string}`,
  summary: string,
  ...[{ body, status }, run]: [{ readonly body?: z.ZodType; readonly status: number }, Route['run']]
): Route {
  const isPost = name.startsWith('POST ');
  const path = name.slice(name.indexOf('/'));
  return { method: isPost ? 'POST' : 'DELETE', path, summary, query: noQuery, status, run, ...(body !== undefined && { body }) };
}

function idsOf(letters: z.infer<typeof lettersBody>): readonly string[] | 'all' {
  return 'ids' in letters ? letters.ids : 'all';
}

/** All mistakes of a request at once, each with the parameter it concerns. */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map((issue) => [...issue.path.map(String), issue.message].join(': '));
  throw new RequestError('request.invalid', mistakes.join('; '));
}
