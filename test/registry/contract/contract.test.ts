import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rows, type PlacedRow } from '../../../src/registry/contract/contract.ts';
import { jsonSchemaOf, type JsonSchema } from '../../../src/registry/contract/json-schema.ts';
import { openApiOf } from '../../../src/registry/contract/openapi.ts';
import { checkRequest } from '../../../src/registry/contract/row.ts';
import { userIdOf } from '../../../src/identity/user.rules.ts';
import { exampleRequest } from '../../support/example-request.ts';
import { ISSUER } from '../../support/identity/fake-issuer.ts';
import { bearer, openHttpWorld } from '../../support/identity/http-world.ts';
import { createExampleWorld } from '../example-world.ts';

const named = rows.map((row) => [row.operation, row] as const);
/** What they need is new each time: login.test.ts has it. */
const walked: ReadonlySet<string> = new Set(['answerLogin', 'showConsent', 'decideLogin', 'createToken']);

describe('each row of the contract', () => {
  it('has an operation of its own, a path with its parameters, and sentences', () => {
    expect(new Set(rows.map(({ operation }) => operation)).size).toBe(rows.length);
    for (const { operation, path, params, summary, description = 'None.' } of rows) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect([operation, inPath]).toEqual([operation, Object.keys(params?.shape ?? {})]);
      for (const text of [summary, description]) expect([operation, text]).toEqual([operation, expect.stringMatching(/^[A-Z`].*\.$/)]);
    }
  });

  it.each(named)('documents every field of its request and its answer: %s', (_, { params, query, body, answer, status }) => {
    expect(answer === undefined).toBe([204, 302, 303].includes(status));
    for (const schema of [params, query, body]) {
      const { properties = {} } = schema === undefined ? {} : jsonSchemaOf(schema).schema;
      expect(Object.entries(properties).filter(([, field]) => typeof field === 'object' && field.description === undefined)).toEqual([]);
    }
  });

  it('shows objects only to readers, by their grants (test/contracts/reader-matrix.ts), and lists them in a turn', () => {
    const showing = rows.filter(({ answer }) => answer !== undefined && 'StoredObject' in jsonSchemaOf(answer).named);
    expect(showing.filter(({ scope }) => scope !== 'read').map(({ operation }) => operation)).toEqual([]);
    // a single object is read by its key
    expect(showing.filter(({ heavy }) => heavy === undefined).map(({ operation }) => operation)).toEqual(['explainObject']);
  });

  it.each(named.filter(([operation]) => !walked.has(operation)))('answers its example as it says: %s', async (operation, row) => {
    const { operations, store } = await createExampleWorld({ userId: userIdOf(ISSUER, 's-admin'), userEmail: 'admin@example.com' });
    const world = await openHttpWorld({ operations, store });
    const { path, headers: ofExample, ...rest } = exampleRequest(row);
    const sent = { headers: { ...ofExample, ...bearer(await world.tokenOf('admin')) }, ...rest };
    // only webhooks have tokens
    const place = operation === 'rotateToken' ? path.replace('photos', 'posted') : path;
    const { status, headers, text } = await world.send(row.method, place, sent);
    expect({ status, text }).toMatchObject({ status: row.status });
    if (row.answer === undefined) return expect(text).toBe('');
    expect(headers['content-type']).toContain(row.media ?? 'application/json');
    const answered: unknown = row.media === undefined ? JSON.parse(text) : text;
    // what a row does not know is left out by its schema, and would be missing here
    return expect(row.answer.parse(answered)).toEqual(answered);
  });

  it.each(named)('takes whatever it documents: %s', (_, row) => {
    for (const part of ['params', 'query', 'body'] as const) {
      const schema = row[part];
      if (schema === undefined) continue;
      const others = Object.fromEntries((['params', 'query', 'body'] as const).map((each) => [each, row.example[each]]));
      fc.assert(
        fc.property(valueOf(jsonSchemaOf(schema).schema), (value) => {
          checkRequest(row, { ...others, [part]: value });
        }),
        { numRuns: 50 },
      );
    }
  });
});

const rowOf = (operation: string): PlacedRow => rows.find((row) => row.operation === operation)!;
it.each([
  ['searchObjects', { query: { limit: 0 } }, 'limit: must be at least 1'],
  ['searchObjects', { query: { limit: 1.5 } }, 'limit: must be a whole number from 1 to 1000'],
  ['searchObjects', { query: { prefix: 'é'.repeat(513) } }, 'prefix: must have at most 1024 bytes in UTF-8'],
  ['searchObjects', { query: { q: '😀'.repeat(1_025) } }, 'q: must have at most 1024 characters'],
  ['searchObjects', { query: { prefx: 'a' } }, 'prefx: there is no such parameter'],
  ['searchObjects', { body: 7 }, 'body: this operation takes no body'],
  ['explainObject', { params: { bucket: 'photos' } }, 'key: must be given'],
  ['getBucket', { params: { bucket: '' } }, 'bucket: must be the name of a bucket'],
  ['getBucket', { params: { bucket: 'no/name' } }, 'bucket: must be the name of a bucket'],
  ['getBucket', { params: { bucket: 'x'.repeat(256) } }, 'bucket: must be the name of a bucket'],
  ['listGaps', { query: { state: 'ajar' } }, 'state: must be one of open, closed'],
  ['addBucket', { body: { bucket: 'photos', topic_arn: 'arn:aws:sqs:eu-west-1:123456789012:uploads' } }, 'topic_arn: must be the ARN'],
  ['addBucket', { body: { bucket: 'photos', topicArn: 'x' } }, 'topicArn: there is no such field'],
  ['addBucket', {}, 'body: must be given'],
  ['startReindex', { params: { bucket: 'photos' }, body: { now: 'yes' } }, 'now: must be true or false'],
  ['createApiKey', { body: { name: 'ci', expires_in_days: '90' } }, 'expires_in_days: must be a whole number from 1 to 365'],
  ['listAllApiKeys', { query: { unused_since: '2026-13-01' } }, 'unused_since: must be a day'],
  ['createToken', { body: { grant_type: 'password', username: 'a' } }, 'grant_type: must be'],
  ['discardDeadLetters', { body: { ids: ['a'], all: true } }, 'body: must be {"ids": ["…"]} or {"all": true}'],
])('requests that are not as documented are refused by name: %s %j', (operation, request, message) => {
  const refusal = { code: 'request.invalid', message: expect.stringContaining(message) };
  expect(() => checkRequest(rowOf(operation), request)).toThrow(expect.objectContaining(refusal));
});

it('refers in its OpenAPI document to nothing that is not there', () => {
  const text = openApiOf(rows, '1.2.3');
  // such fields must not be sent: generators leave them out of requests
  expect(text).not.toContain('readOnly');
  const { components } = JSON.parse(text) as { readonly components: { readonly schemas: object; readonly responses: object } };
  const parts = (['schemas', 'responses'] as const).flatMap((kind) => Object.keys(components[kind]).map((name) => `${kind}/${name}`));
  const references = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, reference]) => reference);
  expect(new Set(references)).toEqual(new Set(parts.map((part) => `#/components/${part}`)));
});

/** Any value that a JSON Schema of ours allows; its longest and shortest texts among them. */
function valueOf(schema: JsonSchema | boolean): fc.Arbitrary<unknown> {
  if (typeof schema === 'boolean') return fc.anything();
  const { type, anyOf, enum: values, const: constant, properties = {}, required = [], items, pattern } = schema;
  const { minLength = 0, maxLength = 20, minimum = 0, maximum = 1_000_000, minItems = 0 } = schema;
  if (constant !== undefined) return fc.constant(constant);
  if (values !== undefined) return fc.constantFrom(...values);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(valueOf));
  if (type === 'null') return fc.constant(null);
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer') return fc.oneof(fc.constantFrom(minimum, maximum), fc.integer({ min: minimum, max: maximum }));
  if (type === 'array') return fc.array(valueOf(items as JsonSchema), { minLength: minItems, maxLength: 5 });
  if (type === 'object') {
    const fields = Object.entries(properties).map(([name, field]) => [name, valueOf(field)]);
    return fc.record<Record<string, unknown>>(Object.fromEntries(fields), { requiredKeys: [...required] });
  }
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
  // that a name is not all blank is said in words: JSON Schema has no such limit
  const text = fc.string({ minLength, maxLength }).filter((each) => minLength === 0 || each.trim() !== '');
  return fc.oneof(fc.constantFrom('x'.repeat(minLength), 'x'.repeat(maxLength)), text);
}
