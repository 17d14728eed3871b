/** Creates the routes from the contract's rows. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PlacedRow } from './contract/contract.ts';
import { numericFields } from './contract/json-schema.ts';
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
  // computed at the first request, because computing all rows' fields would take a tenth of a start's CPU time
  let numbers: ReadonlySet<string> | undefined;
  return ({ params, query, body }) => {
    numbers ??= numericFields(row.query);
    return checkRequest(row, { params, query: withNumbers(query, numbers), body });
  };
}

/** Converts a URL's texts to numbers. A text that isn't a whole number stays unchanged, and the check refuses it. */
function withNumbers(query: unknown, numbers: ReadonlySet<string>): unknown {
  if (typeof query !== 'object' || query === null || numbers.size === 0) return query;
  return Object.fromEntries(
    Object.entries(query).map(([name, value]: [string, unknown]) => [
      name,
      numbers.has(name) && typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value,
    ]),
  );
}
