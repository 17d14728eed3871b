/** The OpenAPI 3.1 document of the contract. */
import type { PlacedRow } from './contract.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { authorisationErrors, bodyErrors, generalErrors, PROBLEM_MEDIA, problemSchema, statusOf } from './problem.ts';

/** URL and headers are read before the operation is known. */
const HEADERS_TOO_LARGE = problemResponse('Codes: request.too-large. The URL and the headers are larger than 16 KiB together.');

/** These rows' document, as JSON. */
export function openApiOf(rows: readonly PlacedRow[], version: string): string {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of rows) paths[row.path] = { ...paths[row.path], [row.method.toLowerCase()]: operationOf(row) };
  const answers = [problemSchema, ...rows.flatMap(({ answer }) => (answer === undefined ? [] : [answer]))];
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Tally',
      version,
      description: `Times are ISO 8601 in UTC. Errors are ${PROBLEM_MEDIA} (RFC 9457) with a code. x-tally-scope names who may call an operation.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A session (qs_…) or an API key (qk_…), if callers are authenticated.' },
      },
      responses: {
        Problem: { description: 'An error.', content: { [PROBLEM_MEDIA]: { schema: { $ref: '#/components/schemas/Problem' } } } },
      },
      schemas: Object.assign({}, ...answers.map((answer) => jsonSchemaOf(answer).named)),
    },
  };
  return JSON.stringify(document).replaceAll('"#/$defs/', '"#/components/schemas/');
}

function operationOf(row: PlacedRow): unknown {
  const { operation, summary, description, scope } = row;
  return {
    operationId: operation,
    summary,
    ...(description !== undefined && { description }),
    'x-tally-scope': scope,
    security: scope === 'none' ? [] : [{ bearer: [] }],
    parameters: [...parametersOf(row, 'path'), ...parametersOf(row, 'query')],
    ...bodyOf(row),
    responses: { ...successesOf(row), ...errorsOf(row), 431: HEADERS_TOO_LARGE, default: problemResponse('An error.') },
  };
}

/** The parameters of a row. Their examples are values, not the texts that represent them in a URL. */
function parametersOf({ params, query, example }: PlacedRow, place: 'path' | 'query'): readonly unknown[] {
  const schema = place === 'path' ? params : query;
  const examples = (place === 'path' ? example.params : example.query) ?? {};
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = jsonSchemaOf(schema).schema;
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = typeof property === 'object' ? property : {};
    return {
      name,
      in: place,
      required: required.includes(name),
      ...(description !== undefined && { description }),
      schema: rest,
      ...(name in examples && { example: examples[name] }),
    };
  });
}

function bodyOf({ body, example }: PlacedRow): { readonly requestBody?: unknown } {
  if (body === undefined) return {};
  const content = { 'application/json': { schema: jsonSchemaOf(body).schema, example: example.body } };
  return { requestBody: { required: !body.safeParse(undefined).success, content } };
}

function successesOf({ status, answer, media = 'application/json', otherStatuses = {} }: PlacedRow): Readonly<Record<string, unknown>> {
  const content = answer === undefined ? undefined : { [media]: { schema: jsonSchemaOf(answer).schema } };
  const others = Object.entries(otherStatuses).map(([each, description]) => [
    each,
    { description, ...(Number(each) !== 202 && content !== undefined && { content }) },
  ]);
  return {
    [status]: { description: 'Done.', ...(content !== undefined && { content }) },
    ...Object.fromEntries(others),
  };
}

/** Groups the error codes by status. */
function errorsOf(row: PlacedRow): Readonly<Record<string, unknown>> {
  const byStatus = Object.groupBy(errorCodesOf(row), (code) => statusOf(code));
  return Object.fromEntries(
    Object.entries(byStatus)
      // statuses in otherStatuses are already documented
      .filter(([status]) => !(Number(status) in (row.otherStatuses ?? {})))
      .map(([status, codes = []]) => [status, problemResponse(`Codes: ${codes.join(', ')}.`)]),
  );
}

/** Returns all error codes of an operation, including those of every operation. */
function errorCodesOf({ path, body, errors, scope }: PlacedRow): readonly Parameters<typeof statusOf>[0][] {
  const refusals = scope === 'none' ? [] : authorisationErrors;
  const ofBody = body === undefined ? [] : bodyErrors;
  if (!path.startsWith('/v1/')) return [...new Set([...errors, ...refusals, ...ofBody])];
  return [...new Set([...errors, ...refusals, ...ofBody, ...generalErrors])];
}

/** Refers to the error response that all operations share. OpenAPI 3.1 permits a description beside the reference. */
function problemResponse(description: string): unknown {
  return { $ref: '#/components/responses/Problem', description };
}
