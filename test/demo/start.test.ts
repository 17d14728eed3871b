import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createApp } from '../../src/serve.ts';
import { StartError } from '../../src/serve/listening.ts';
import { parseSettings } from '../../src/settings/settings.ts';
import { acquireServeLock } from '../../src/store/sqlite/connection.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tally-start-'));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** The error with which the process does not start. */
async function refusal(more: Readonly<Record<string, string>>): Promise<unknown> {
  const addresses = ['TALLY_HTTP_ADDRESS', 'TALLY_HEALTH_ADDRESS', 'TALLY_EMBEDDED_ADDRESS'].map((name) => [name, '127.0.0.1:0']);
  const own = { TALLY_EMBEDDED: 'true', TALLY_EMBEDDED_DATA: folder, TALLY_SOCKET: join(folder, 'socket'), TALLY_LOG_LEVEL: 'silent' };
  const parsed = parseSettings({ ...Object.fromEntries(addresses), ...own, ...more }, () => expect.fail('no setting names a file'));
  if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
  const environment = { region: undefined, ignoresEndpoints: undefined, endpoints: {} };
  return createApp(parsed.settings, environment, () => undefined)
    .start()
    .catch((error: unknown) => error);
}

test.each([
  ['TALLY_EMBEDDED_DATA', () => ({})],
  ['TALLY_INDEX_URL', (path: string) => ({ TALLY_INDEX_URL: `sqlite:${path}` })],
])('Bug: a start on an index that is served or damaged names the setting that says where it is: %s', async (setting, naming) => {
  const path = join(folder, 'index.sqlite');
  const lock = acquireServeLock(path);
  const served = await refusal(naming(path));
  if (lock !== 'held') lock.release();
  expect(served).toEqual(
    new StartError(`${setting}: ${path} is served by another tally process. Stop that process, or change ${setting}.`),
  );
  await writeFile(path, 'no database');
  expect(await refusal(naming(path))).toMatchObject({
    name: 'StartError',
    message: expect.stringContaining(`. Check ${setting}. If the index`),
  });
});
