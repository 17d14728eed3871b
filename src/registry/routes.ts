/** Creates the routes from the contract's rows. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PlacedRow } from './contract/contract.ts';
import { checkRequest, type AnyRequest } from './contract/row.ts';

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Adds a route for each row. `admit` throws, before the body is read, for callers who may not use it. */
export function addRoutes<Name extends string>(
  app: FastifyInstance,
  rows: readonly PlacedRow<Name>[],
  handlerOf: (row: PlacedRow<Name>) => Handler,
  admit: (request: FastifyRequest, row: PlacedRow<Name>) => Promise<void> = async () => undefined,
): void {
  for (const row of rows) {
    app.route({
      method: row.method,
      url: row.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: (request) => admit(request, row),
      handler: handlerOf(row),
    });
  }
}

/** Creates the function that reads a request as its row documents it. It throws as {@link checkRequest} does. */
export function requestReader(row: PlacedRow): (request: FastifyRequest) => AnyRequest {
  return ({ params, query, body }) => checkRequest(row, { params, query: withLimit(query), body });
}

/** The query with its only number, the length of a page, which is a text in a URL. The check refuses any other text. */
function withLimit(query: unknown): unknown {
  if (typeof query !== 'object' || query === null || !('limit' in query)) return query;
  const { limit } = query;
  return typeof limit === 'string' && /^-?\d{1,15}$/.test(limit) ? { ...query, limit: Number(limit) } : query;
}
