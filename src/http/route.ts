/** One route: its request is parsed at the door, then its verb is called. */
import type { z } from 'zod';
import { RequestError } from '../domain/request-error.ts';

export interface RouteRequest {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** What a route takes and answers, for OpenAPI. */
export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With `:name` for parameters. */
  readonly path: string;
  readonly summary: string;
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly body: z.ZodType;
  readonly status: number;
  /** What the response holds; absent: nothing. */
  readonly answer?: z.ZodType;
  /** Of the response. Default: application/json. */
  readonly media?: 'text/event-stream';
}

export interface Route<Answer = unknown> extends RouteDescription {
  /**
   * Resolves to the body of the response. Rejects with `request.not-found` for an empty parameter, with `request.invalid`
   * for all mistakes of query and body at once, else with what the verb throws.
   */
  run(request: RouteRequest, signal: AbortSignal): Promise<Answer>;
}

interface RouteParts<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType, Answer> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** Default: 200. */
  readonly status?: number;
  readonly answer?: z.ZodType;
  readonly media?: 'text/event-stream';
  readonly verb: (
    request: { readonly params: z.infer<Params>; readonly query: z.infer<Query>; readonly body: z.infer<Body> },
    signal: AbortSignal,
  ) => Promise<Answer>;
}

type RouteName = readonly [method: Route['method'], path: `/${string}`];

/** Makes a route of its parts. */
export function route<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType, Answer>(
  [method, path]: RouteName,
  summary: string,
  { verb, status = 200, ...schemas }: RouteParts<Params, Query, Body, Answer>,
): Route<Answer> {
  return {
    method,
    path,
    summary,
    status,
    ...schemas,
    async run(request, signal) {
      const params = schemas.params.safeParse(request.params);
      if (!params.success)
        throw new RequestError('request.not-found', `${path} needs a name for each of its parameters; see /openapi.json`);
      const query = schemas.query.safeParse(request.query);
      const body = schemas.body.safeParse(request.body ?? undefined);
      if (query.success && body.success) return verb({ params: params.data, query: query.data, body: body.data }, signal);
      throw new RequestError('request.invalid', [...mistakesOf('query', query), ...mistakesOf('body', body)].join('; '));
    },
  };
}

/** Each with the place it concerns: `query limit: must be …`. */
function mistakesOf(place: string, { error }: z.ZodSafeParseResult<unknown>): readonly string[] {
  return (error?.issues ?? []).map(({ path, message }) => `${[place, ...path.map(String)].join(' ')}: ${message}`);
}
