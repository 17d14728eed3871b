/**
 * The OpenAPI document and the registry agree: schemathesis sends requests of every operation, valid and invalid ones, to the
 * program with identity on SQLite, and finds no 5xx and no answer that the document does not have.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canRun, findProgram, runProgram } from '../docs/programs.ts';
import { isLong } from '../support/breadth.ts';
import { startRegistryWorld, type RegistryWorld } from '../support/identity/registry-world.ts';

const SCHEMATHESIS = { name: 'schemathesis', variable: 'TALLY_TEST_SCHEMATHESIS' };

const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];
/** A long run has a number of examples. */
const LONG_EXAMPLES = process.env['TALLY_TEST_OPENAPI_EXAMPLES'];
/** Of each operation, besides the example of the document. */
const EXAMPLES = Number(LONG_EXAMPLES ?? 3);
/** The limits of each field are a hundred requests an operation: registry/contract/ tries the documented ones each day. */
const PHASES = isLong ? 'examples,coverage,fuzzing' : 'examples,fuzzing';
/** They end the session of the caller, or remove what the others need: they are tried last. */
const LAST = ['logOut', 'removeBucket'];

describe.skipIf(!canRun('the OpenAPI document against a running registry', [SCHEMATHESIS]))('the answers of a registry', () => {
  let world: RegistryWorld;
  let document: string;

  beforeAll(async () => {
    world = await startRegistryWorld();
    document = join(world.folder, 'openapi.json');
    await writeFile(document, JSON.stringify(withoutDefault(JSON.parse((await world.send('GET', '/openapi.json')).text))));
    const { token } = await world.logIn('root');
    // the bucket of the examples, with an object
    for (const path of ['photos', 'photos/cats/tom.jpg']) {
      expect((await fetch(`${world.daemon.embeddedUrl}/${path}`, { method: 'PUT', body: path === 'photos' ? null : 'miau' })).status).toBe(
        200,
      );
    }
    const connected = await world.send('POST', '/v1/buckets', { token, body: { bucket: 'photos' } });
    expect(connected.status, connected.text).toBe(201);
  });
  afterAll(() => world?.close());

  const SESSION = 'the session of an administrator';
  /** Authorisation is one table, which registry/authorisation.test.ts tries whole: each day one caller stands for all. */
  const callers: readonly (readonly [caller: string, tokenOf: () => Promise<string | undefined>])[] = [
    ...(isLong
      ? ([
          ['anonymous', async () => undefined],
          ['the API key of a user', keyOfUser],
        ] as const)
      : []),
    [SESSION, async () => (await world.logIn('root')).token],
  ];

  async function keyOfUser(): Promise<string> {
    const { token } = await world.logIn('alice');
    return (await world.createKey(token, 'schemathesis')).secret;
  }

  async function run(token: string | undefined, operations: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runProgram(
      findProgram(SCHEMATHESIS) ?? '',
      [
        'run',
        document,
        `--url=${world.daemon.controlUrl}`,
        `--checks=${CHECKS.join(',')}`,
        `--phases=${PHASES}`,
        `--max-examples=${EXAMPLES}`,
        // the same requests each time
        '--seed=1',
        '--generation-deterministic',
        '--no-shrink',
        // credentials are those of the caller; an answer that redirects is an answer
        '--generation-with-security-parameters=false',
        '--max-redirects=0',
        // a key may send 100 requests a second
        '--rate-limit=90/s',
        // in seconds: the default of ten is not enough beside other tests
        '--request-timeout=120',
        '--continue-on-failure',
        '--warnings=off',
        '--no-color',
        ...(token === undefined ? [] : [`--header=Authorization: Bearer ${token}`]),
        ...operations,
      ],
      { cwd: world.folder, env: process.env },
    );
    expect(code, `${stdout}\n${stderr}`).toBe(0);
    return stdout;
  }

  it.each(callers)('are those of its OpenAPI document: %s', async (caller, tokenOf) => {
    const token = await tokenOf();
    const last = (option: string): readonly string[] => LAST.map((operation) => `--${option}-operation-id=${operation}`);
    // without a token they end and remove nothing
    const told = await run(token, token === undefined ? [] : last('exclude'));
    // every operation was tried
    expect(told).toMatch(/\d{3,} generated/);
    if (caller === SESSION) await run(token, last('include'));
    expect(JSON.stringify(world.daemon.log)).not.toContain('internal.unexpected');
  });
});

/** The document without the answers that stand for every status: each status must be listed. */
function withoutDefault(document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { responses: Record<string, unknown> }>>>>;
}) {
  for (const operations of Object.values(document.paths))
    for (const { responses } of Object.values(operations)) delete responses['default'];
  return document;
}
