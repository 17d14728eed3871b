import { createStoredGrants } from '../../../src/identity/grants/grants.ts';
import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  operationsOf,
  rows,
  type AnyOperation,
  type Context,
  type PlacedRow,
  type Operations,
} from '../../../src/registry/contract/contract.ts';
import { jsonSchemaOf, type JsonSchema } from '../../../src/registry/contract/json-schema.ts';
import { openApiOf } from '../../../src/registry/contract/openapi.ts';
import { checkRequest } from '../../../src/registry/contract/row.ts';
import { keyRecordOf } from '../../../src/identity/api-key.rules.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import { markSeenAt } from '../../support/fakes/gap-records.ts';
import { refs, updateRecord } from '../../../src/store/stored.ts';
import { exampleRequest } from '../../support/example-request.ts';
import { get } from '../../support/identity/browser.ts';
import { createControlWorld } from '../../support/worlds/control.ts';
import { LETTERS, QUEUE } from '../../support/worlds/operations.ts';
import { someFiles, bearer, openHttpWorld, type HttpWorld } from '../../support/identity/http-world.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { listenControlPlane } from '../../support/servers/control-plane.ts';
import { sessionActor, userRecord } from '../../support/identity/actors.ts';
import { CLIENT, ORIGIN, queryOf } from '../../support/identity/world.ts';
import { newKeySecret } from '../../../src/identity/random-texts.ts';
import { refs as identityRefs } from '../../../src/identity/refs.ts';

const named = rows.map((row) => [row.operation, row] as const);

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

  it.each(named)('answers its example as it says: %s', async (_, row) => {
    const { port, instead } = await startWorld(row);
    const { status, headers, text } = await send(port, row, instead);
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

const LETTER_ID = '5fea7756-0ea4-451a-a703-a558b933e274';

/** A control plane on stores in memory that can answer the example: one bucket, one object, one job, one dead letter. */
async function startWorld({ operation }: PlacedRow) {
  const store = createMemoryStore();
  const { state, clock, telemetry, connectBucket, connections, queues, deadLetters, operations } = createControlWorld({ store });
  if (operation in ofPeople) return startPeopleWorld(operation, operations, store);
  await connectBucket.connect({ bucket: 'photos', ...(operation === 'rotateToken' && { source: 'webhook' }) }, 'test');
  if (operation === 'changeNotification') await connections.apply({ bucket: 'photos' }, {});
  await queues.send(QUEUE, { body: 'no event', attributes: {} });
  const [message] = await queues.receive(QUEUE, { visibilityS: 60, max: 1 });
  await deadLetters.send(message!, { code: 'message.not-json', reason: 'Unexpected token' }, []);
  for (const letter of queues.messages(LETTERS)) Object.assign(letter, { messageId: LETTER_ID });
  const atMs = clock.nowMs();
  const gap = markSeenAt(atMs);
  await updateRecord(state, refs.gap(gap.id), () => gap);
  const id = 'job-0mk3x1a2b-0123456789ab';
  const job = { id, bucket: 'photos', prefix: '', mode: 'report', requestedBy: 'test', createdAtMs: atMs, state: 'queued' } as const;
  await updateRecord(state, refs.job(id), () => job);
  await putExampleKey(state, atMs);
  const listener = await listenControlPlane({ operations: withSession(operations), telemetry, loadPanel: someFiles });
  onTestFinished(() => listener.close());
  return { port: listener.port, instead: undefined };
}

/** What a row's example cannot name, because it is new each time: codes, cookies, tokens. */
interface Instead {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

const ownPage = (url: string) => ({ 'x-tally-csrf': '1', origin: url });
const json = { 'content-type': 'application/json' };

const ofAdmin = async (world: HttpWorld): Promise<Instead> => ({ headers: bearer(await world.tokenOf('admin')) });
const byAdmin = ['listUsers', 'changeUser', 'addGrant', 'listReaders', 'getAccess'];

/** The rows that need an issuer and a person, each with what is sent besides the example. */
const ofPeople: Readonly<Record<string, (world: HttpWorld) => Promise<Instead>>> = {
  ...Object.fromEntries(byAdmin.map((operation) => [operation, ofAdmin])),
  removeGrant: async (world) => {
    const grant = { who: 'group:analysts', where: 'photos/2026/', granted_by: 'root', created_at: '2026-01-01T00:00:00.000Z' } as const;
    await createStoredGrants({ ...world, state: world.store.state }).change(() => [grant]);
    return ofAdmin(world);
  },
  logOut: async (world) => ({ headers: bearer(await world.tokenOf('user')) }),
  beginLogin: async () => ({}),
  answerLogin: async (world) => {
    const { cookie: name, location } = await world.logins.begin(CLIENT, new AbortController().signal);
    return { path: world.issuer.answerTo(location), headers: { cookie: `tally-login-${world.port}=${name}` } };
  },
  showConsent: async (world) => ({ headers: { cookie: (await askingIn(world)).cookie } }),
  decideLogin: async (world) => {
    const { cookie, token } = await askingIn(world);
    return { headers: { ...json, ...ownPage(world.url), cookie }, body: { login: token, allow: true } };
  },
  createToken: async (world) => {
    const { name, token } = await askingIn(world);
    const { redirect = '' } = await world.logins.decide(name, { token, allow: true }, ORIGIN);
    return { headers: json, body: { ...exampleOf('createToken'), code: new URL(redirect).searchParams.get('code') } };
  },
};

const exampleOf = (operation: string): object => rows.find((row) => row.operation === operation)?.example.body ?? {};

async function askingIn(world: HttpWorld) {
  const signal = new AbortController().signal;
  const { cookie: name, location } = await world.logins.begin(CLIENT, signal);
  await world.logins.answered(name, queryOf(world.issuer.answerTo(location)), ORIGIN, signal);
  return { name, cookie: `tally-login-${world.port}=${name}`, token: (await world.logins.consent(name, signal)).token };
}

async function startPeopleWorld(operation: string, operations: Operations, store: Store) {
  const world = await openHttpWorld({ operations, store });
  await updateRecord(store.state, identityRefs.user('0aB1cD2eF3gH4iJ5kL6mN7'), () => userRecord());
  return { port: world.port, instead: await ofPeople[operation]?.(world) };
}

/** Callers over HTTP are not authenticated yet, and only users have API keys. */
function withSession(operations: Operations): Operations {
  const byName: Readonly<Record<string, AnyOperation>> = operations;
  return operationsOf(({ operation }) => (request, context: Partial<Context> = {}) => {
    const { actor = sessionActor(), signal = new AbortController().signal } = context;
    return byName[operation]!(request, { ...context, actor: /ApiKey/.test(operation) ? sessionActor() : actor, signal });
  });
}

async function putExampleKey(state: StateStore, atMs: number): Promise<void> {
  const id = 'k0123456789abcdefghijAB';
  const secret = newKeySecret();
  const owner = { userId: 'u-bob', userEmail: 'bob@example.com' };
  const key = keyRecordOf({ secret, name: 'export', ...owner, scopes: ['read'], expiresInDays: 90, nowMs: atMs });
  await updateRecord(state, identityRefs.apiKey(id), () => ({ ...key, id }));
  const entry = { id, createdAtMs: atMs, expiresAtMs: key.expiresAtMs };
  await updateRecord(state, identityRefs.userKeys('u-bob'), () => ({ userId: 'u-bob', keys: [entry], revoked: [] }));
}

function send(port: number, row: PlacedRow, instead: Instead = {}) {
  const { path, headers, body } = exampleRequest(row);
  const given = instead.body === undefined ? body : JSON.stringify(instead.body);
  return get(`http://127.0.0.1:${port}${instead.path ?? path}`, {
    method: row.method,
    headers: { ...headers, ...instead.headers },
    ...(given !== undefined && { body: given }),
  });
}
