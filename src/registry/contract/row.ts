/** A row of the contract, which describes one operation, and the types derived from it. */
import { z } from 'zod';
import type { FaultCode } from '../../base/fault.ts';
import type { Scope } from '../../identity/authorise.rules.ts';
import type { RowCommand } from './command.ts';
import { RequestError, type RequestErrorCode } from '../../base/request-error.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** `{name}` is a parameter. */
export type RowKey = `${Method} /${string}`;

export interface Row {
  /** The operationId of OpenAPI, and the name by which programs call it. */
  readonly operation: string;
  /** One sentence. */
  readonly summary: string;
  /** Further facts for callers. */
  readonly description?: string;
  /** Who may call it. */
  readonly scope: Scope;
  /** Set if a session's cookie is no credential here: callers send a bearer token. */
  readonly bearerOnly?: true;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** The response's body; absent: none. */
  readonly answer?: z.ZodType;
  /** Default: 200, or 204 without an answer. */
  readonly status?: number;
  /** Other statuses that are not errors, with what they mean. A 202 here has no body. */
  readonly otherStatuses?: Readonly<Record<number, string>>;
  /** The response's media type. Default: application/json. */
  readonly media?: string;
  /** Set if it is a tool of programs that act for people. Tools only read. */
  readonly tool?: { readonly name: string; readonly title: string; readonly description: string };
  /** Set if it reads much of the index: `search`, of which a few run at a time, or `sum`, which reads everything that matches and runs alone. */
  readonly heavy?: 'search' | 'sum';
  /** Its command, or several commands, each of which gives part of the request. */
  readonly cli?: RowCommand | readonly RowCommand[];
  /** The error codes that this operation can return besides those of every operation. */
  readonly errors?: readonly (RequestErrorCode | FaultCode)[];
  /** A request that a control plane with the bucket `photos` can answer. Default: one without any parameter. */
  readonly example?: ExampleRequest;
}

export interface ExampleRequest {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
}

type Optional<Name extends string, Value> = undefined extends Value
  ? { readonly [Key in Name]?: Exclude<Value, undefined> }
  : object extends Value
    ? { readonly [Key in Name]?: Value }
    : { readonly [Key in Name]: Value };

/** A request as callers send it: fields with a default may be absent. */
export type RequestOf<R> = (R extends { readonly params: infer P extends z.ZodType } ? { readonly params: z.input<P> } : object) &
  (R extends { readonly query: infer Q extends z.ZodType } ? Optional<'query', z.input<Q>> : object) &
  (R extends { readonly body: infer B extends z.ZodType } ? Optional<'body', z.input<B>> : object);

/** A checked request, with every default filled in. */
export type CheckedOf<R> = (R extends { readonly params: infer P extends z.ZodType } ? { readonly params: z.output<P> } : object) &
  (R extends { readonly query: infer Q extends z.ZodType } ? { readonly query: z.output<Q> } : object) &
  (R extends { readonly body: infer B extends z.ZodType } ? { readonly body: z.output<B> } : object);

export type AnswerOf<R> = R extends { readonly answer: infer A extends z.ZodType } ? z.output<A> : void;

/** A request of any operation. */
export interface AnyRequest {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

const nothing = z.strictObject({});
/** The body of an operation without one. Some clients send {} or null then. */
const noBody = z.strictObject({}, { error: 'this operation takes no body' }).optional();

/**
 * The request as its row documents it, with every default. Throws one `request.invalid` with all mistakes of path, query and body.
 */
export function checkRequest(row: Pick<Row, 'params' | 'query' | 'body'>, request: AnyRequest): AnyRequest {
  const params = (row.params ?? nothing).safeParse(request.params ?? {});
  const query = (row.query ?? nothing).safeParse(request.query ?? {});
  const body = (row.body ?? noBody).safeParse(request.body ?? undefined);
  if (params.success && query.success && body.success) return { params: params.data, query: query.data, body: body.data };
  // a value may break two rules that share a message
  const mistakes = new Set([...mistakesOf(params, 'parameter'), ...mistakesOf(query, 'parameter'), ...mistakesOf(body, 'field')]);
  throw new RequestError('request.invalid', [...mistakes].join('; '));
}

const NAME_LENGTH_MAX = 64;

function mistakesOf({ error }: z.ZodSafeParseResult<unknown>, what: 'parameter' | 'field'): readonly string[] {
  return (error?.issues ?? []).flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((name) => `${name.slice(0, NAME_LENGTH_MAX)}: there is no such ${what}`);
    const place = issue.path.map(String).join('.');
    return [`${place === '' ? 'body' : place}: ${issue.message}`];
  });
}
