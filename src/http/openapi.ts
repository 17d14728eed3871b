import { z } from 'zod';
import type { Route } from './routes.ts';

/** The OpenAPI 3.1 document of the routes. */
export function openApiOf(routes: readonly Route[], version: string): unknown {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Tally control plane', version, description: 'Errors are application/problem+json (RFC 9457) with a fault code.' },
    paths,
  };
}

function operationOf(route: Route): unknown {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
  const inQuery = Object.entries(route.query.shape).map(([name, schema]) => ({
    name,
    in: 'query',
    required: !schema.safeParse(undefined).success && !isExactOptional(route.query, name),
    schema: jsonSchema(schema),
  }));
  return {
    summary: route.summary,
    parameters: [...inPath, ...inQuery],
    ...(route.body !== undefined && { requestBody: { content: { 'application/json': { schema: jsonSchema(route.body) } } } }),
    responses: {
      [route.status]: { description: 'Done' },
      default: { description: 'A problem', content: { 'application/problem+json': {} } },
    },
  };
}

function isExactOptional(query: z.ZodObject, name: string): boolean {
  const schema = jsonSchema(query);
  return !(schema.required ?? []).includes(name);
}

function jsonSchema(schema: z.core.$ZodType): { readonly required?: readonly string[] } {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}
