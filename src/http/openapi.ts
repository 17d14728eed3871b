import { z } from 'zod';
import { problemSchema } from './problem.ts';
import type { RouteDescription } from './route.ts';

const PROBLEM = '#/components/schemas/Problem';

/** The OpenAPI 3.1 document of the routes. */
export function openApiOf(routes: readonly RouteDescription[], version: string): unknown {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Tally control plane', version, description: 'Errors are application/problem+json (RFC 9457) with a fault code.' },
    paths,
    components: { schemas: { Problem: jsonSchema(problemSchema, 'input') } },
  };
}

function operationOf({ summary, params, query, body, status, answer, media }: RouteDescription): unknown {
  return {
    summary,
    parameters: [...parametersOf(params, 'path'), ...parametersOf(query, 'query')],
    ...bodyOf(body),
    responses: {
      [status]: { description: 'Done', ...(answer !== undefined && { content: contentOf(answer, media) }) },
      default: { description: 'A problem', content: { 'application/problem+json': { schema: { $ref: PROBLEM } } } },
    },
  };
}

/** As values, not as the text that stands for them in a URL. */
function parametersOf(schema: z.ZodObject, place: 'path' | 'query'): readonly unknown[] {
  const { properties = {}, required = [] } = jsonSchema(schema, 'output');
  return Object.entries(properties).map(([name, property]) => ({ name, in: place, required: required.includes(name), schema: property }));
}

/** Nothing for a route whose body has no fields. */
function bodyOf(body: z.ZodType): { readonly requestBody?: unknown } {
  const { properties = {}, anyOf = [] } = jsonSchema(body, 'input');
  if (Object.keys(properties).length === 0 && anyOf.length === 0) return {};
  return { requestBody: { required: !body.safeParse(undefined).success, content: contentOf(body) } };
}

function contentOf(schema: z.ZodType, media = 'application/json'): unknown {
  return { [media]: { schema: jsonSchema(schema, 'input') } };
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): z.core.JSONSchema.BaseSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}
