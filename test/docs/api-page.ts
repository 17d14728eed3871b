/** docs/reference/api.md, made of the contract. */
import { rows, type PlacedRow } from '../../src/registry/contract/contract.ts';
import { accessRows } from '../../src/registry/contract/access.ts';
import { keyRows } from '../../src/registry/contract/api-keys.ts';
import { auditRows } from '../../src/registry/contract/audit.ts';
import { bucketRows } from '../../src/registry/contract/buckets.ts';
import { connectionRows } from '../../src/registry/contract/connections.ts';
import { deadLetterRows } from '../../src/registry/contract/dead-letters.ts';
import { eventRows } from '../../src/registry/contract/events.ts';
import { gapRows } from '../../src/registry/contract/gaps.ts';
import { jobRows } from '../../src/registry/contract/jobs.ts';
import { loginRows } from '../../src/registry/contract/login.ts';
import { mcpRows } from '../../src/registry/contract/mcp.ts';
import { objectRows } from '../../src/registry/contract/objects.ts';
import { panelRows } from '../../src/registry/contract/panel.ts';
import { documentRows, healthRows } from '../../src/registry/contract/service.ts';
import { usageRows } from '../../src/registry/contract/usage.ts';
import { userRows } from '../../src/registry/contract/users.ts';
import { jsonSchemaOf, type JsonSchema } from '../../src/registry/contract/json-schema.ts';
import { authorisationErrors, bodyErrors, generalErrors, problemSchema, statusOf } from '../../src/registry/contract/problem.ts';
import { exampleRequest } from '../support/example-request.ts';
import { scopeTexts } from '../../src/identity/authorise.rules.ts';

/** The rows of each subject. */
const subjects: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  Objects: { ...objectRows, ...usageRows },
  Events: eventRows,
  Buckets: { ...bucketRows, ...connectionRows },
  Gaps: gapRows,
  'Re-index jobs': jobRows,
  'Dead letters': deadLetterRows,
  'API keys': keyRows,
  Audit: auditRows,
  Access: accessRows,
  Users: userRows,
  'Login and sessions': loginRows,
  'Tools for programs': mcpRows,
  'The process': { ...healthRows, ...documentRows, ...panelRows },
};

/** The page as it is committed. */
export function apiPage(): string {
  const texts = Object.entries(subjects).map(([title, keys]) => {
    const own = rows.filter(({ method, path }) => `${method} ${path}` in keys);
    return { count: own.length, text: [`## ${title}`, ...own.map(operationText)].join('\n\n') };
  });
  if (texts.reduce((sum, { count }) => sum + count, 0) !== rows.length)
    throw new Error('a row of the contract has no subject of this page');
  return `${[introduction(), ...texts.map(({ text }) => text), '## Response objects', ...answersText()].join('\n\n')}\n`;
}

/** The schemas that have a name, once each. */
function named(): Readonly<Record<string, JsonSchema>> {
  const answers = [problemSchema, ...rows.flatMap(({ answer }) => (answer === undefined ? [] : [answer]))];
  return Object.assign({}, ...answers.map((answer) => jsonSchemaOf(answer).named)) as Record<string, JsonSchema>;
}

function answersText(): readonly string[] {
  return Object.entries(named())
    .filter(([name]) => name !== 'Problem')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, schema]) => [`### ${name}`, schema.description ?? '', fieldsTable(schema, 'field')]);
}

function introduction(): string {
  const general = [...generalErrors, ...bodyErrors, ...authorisationErrors].map((code) => `| ${statusOf(code)} | \`${code}\` |`).sort();
  return `# The HTTP API

<!-- Generated from src/registry/contract by \`npm run docs\`. Do not edit. -->

The control plane serves the API at \`TALLY_HTTP_ADDRESS\` (127.0.0.1:8080 by default).
Requests and responses are JSON. Names are snake_case. Times are ISO 8601 in UTC with milliseconds. Unknown fields are
absent. The same contract is available as an OpenAPI 3.1 document at \`/openapi.json\`.

The command line prints the same responses with \`--json\`.

**Scopes.** If callers are authenticated ([login](../guides/login.md)), an operation's scope says who may call it. If not, programs on
the same machine may call every operation except those with the scope \`people\`, and other machines can't reach the API.

| scope | who may call |
|---|---|
${Object.entries(scopeTexts)
  .map(([scope, who]) => `| \`${scope}\` | ${who} |`)
  .join('\n')}

**Pages.** A list returns \`items\` and, if there are more, \`next\`: send it as \`cursor\` to get the next page.

**Errors.** An error is a problem document (RFC 9457, \`application/problem+json\`):

${fieldsTable(named().Problem ?? {}, 'field')}

Every operation under \`/v1\` can return these codes (codes about bodies only if it has a body, and codes about callers only
if callers are authenticated):

| status | code |
|---|---|
${general.join('\n')}

An unknown path returns 404 \`request.not-found\`. An unsupported method returns 405 \`request.method-not-allowed\` with the
header Allow.`;
}

function operationText(row: PlacedRow): string {
  const { method, path, summary, description, scope, params, query, body, answer, media } = row;
  const own = row.errors.map((code) => `| ${statusOf(code)} | \`${code}\` |`).sort();
  const parts = [
    `### \`${method} ${path}\``,
    [summary, description].filter((text) => text !== undefined).join(' '),
    `Operation \`${row.operation}\`, scope \`${scope}\`.`,
  ];
  const parameters = [params, query].flatMap((schema) => (schema === undefined ? [] : [jsonSchemaOf(schema).schema]));
  if (parameters.length > 0) parts.push(fieldsTable(joined(parameters), 'parameter'));
  if (body !== undefined)
    parts.push(`The body${body.safeParse(undefined).success ? ' may be omitted' : ''}:`, fieldsTable(jsonSchemaOf(body).schema, 'field'));
  parts.push(answerText(row));
  if (answer !== undefined && media === undefined) {
    const table = fieldsTable(jsonSchemaOf(answer).schema, 'field');
    if (table !== '') parts.push(table);
  }
  if (own.length > 0) parts.push(['Additional errors:', '', '| status | code |', '|---|---|', ...own].join('\n'));
  parts.push('```sh\n' + curlOf(row) + '\n```');
  return parts.filter((part) => part !== '').join('\n\n');
}

function answerText({ status, answer, media, otherStatuses = {} }: PlacedRow): string {
  const { $ref: reference, type } = answer === undefined ? {} : jsonSchemaOf(answer).schema;
  const object = reference === undefined ? (type === 'object' ? 'with' : '') : `with ${linkOf(reference)}`;
  const what = answer === undefined ? 'without a body' : media === undefined ? object : `with \`${media}\``;
  const others = Object.entries(otherStatuses).map(([each, text]) => ` It answers ${each} in another case. ${text}`);
  return `It answers ${status} ${what}${what === 'with' ? ':' : '.'}${others.join('')}`;
}

function linkOf(reference: string): string {
  const name = reference.split('/').at(-1) ?? '';
  return `[${name}](#${name.toLowerCase()})`;
}

function curlOf(row: PlacedRow): string {
  const { path, body } = exampleRequest(row);
  const how = row.method === 'GET' ? '' : ` -X ${row.method}`;
  const sent = body === undefined ? '' : ` \\\n  -H 'content-type: application/json' -d '${body}'`;
  return `curl${how} 'http://127.0.0.1:8080${path}'${sent}`;
}

function joined(schemas: readonly JsonSchema[]): JsonSchema {
  return {
    type: 'object',
    properties: Object.assign({}, ...schemas.map(({ properties }) => properties)) as Record<string, JsonSchema>,
    required: schemas.flatMap(({ required = [] }) => required),
  };
}

/** Each field with its type and meaning; those of objects within are named with dots, those of lists with `[]`. */
function fieldsTable(schema: JsonSchema, heading: 'field' | 'parameter'): string {
  const lines = fieldLines(schema, '');
  if (lines.length === 0) return '';
  return [`| ${heading} | type | meaning |`, '|---|---|---|', ...lines].join('\n');
}

function fieldLines(schema: JsonSchema, prefix: string): readonly string[] {
  const parts = schema.anyOf ?? [];
  if (parts.length > 0) return [...new Set(parts.flatMap((part) => fieldLines(part, prefix)))];
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    if (typeof field !== 'object') return [];
    const place = `${prefix}${name}`;
    const isRequired = (schema.required ?? []).includes(name);
    const own = `| \`${place}\` | ${typeText(field)}${isRequired ? '' : ', optional'} | ${meaningOf(field)} |`;
    const items = typeof field.items === 'object' && !Array.isArray(field.items) ? field.items : undefined;
    return [own, ...fieldLines(field, `${place}.`), ...(items === undefined ? [] : fieldLines(items, `${place}[].`))];
  });
}

function meaningOf({ description, $ref: reference, items }: JsonSchema): string {
  const list = typeof items === 'object' && !Array.isArray(items) ? items.$ref : undefined;
  const name = (reference ?? list)?.split('/').at(-1);
  return description ?? (name === undefined ? '' : (named()[name]?.description ?? ''));
}

function typeText(schema: JsonSchema): string {
  const {
    type,
    enum: values,
    const: constant,
    anyOf,
    items,
    format,
    minimum,
    maximum,
    minLength,
    maxLength,
    pattern,
    default: preset,
    $ref: reference,
  } = schema;
  const bounds = [
    ...(values !== undefined && values.length <= 8 ? [values.map((value) => `\`${String(value)}\``).join(', ')] : []),
    ...(format === undefined && pattern !== undefined ? [`\`${pattern.replaceAll('|', '\\|')}\``] : []),
    ...(typeof minLength === 'number' || typeof maxLength === 'number' ? [lengthText(minLength, maxLength)] : []),
    ...(isBound(minimum) && isBound(maximum) ? [`${minimum} to ${maximum}`] : isBound(minimum) ? [`at least ${minimum}`] : []),
    ...(preset !== undefined && preset !== '' ? [`default \`${JSON.stringify(preset)}\``] : []),
  ];
  return [nameOf(), ...bounds].join('; ');

  function nameOf(): string {
    if (reference !== undefined) return linkOf(reference);
    if (format === 'date-time') return 'time';
    if (constant !== undefined) return `\`${JSON.stringify(constant)}\``;
    if (anyOf !== undefined) return [...new Set(anyOf.map((part) => typeText(part)))].join(' or ');
    if (type === 'array') return `list of ${typeText((items ?? {}) as JsonSchema)}`;
    if (type === 'integer') return 'whole number';
    return typeof type === 'string' ? type : 'any';
  }
}

function isBound(value: number | undefined): value is number {
  return value !== undefined && Math.abs(value) < Number.MAX_SAFE_INTEGER;
}

function lengthText(min = 0, max?: number): string {
  if (max === undefined) return `at least ${min} characters`;
  return min === 0 ? `at most ${max} characters` : `${min} to ${max} characters`;
}
