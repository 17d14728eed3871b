/** TALLY_GRANTS_FILE: one mistake in it refuses all of it, and the message says where and what to do. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GrantsFileError, readGrantsFile } from '../../src/app/grants-file.ts';
import { GRANTS_MAX, POLICY_BYTES_MAX } from '../../src/domain/access/policy.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tally-grants-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(content: string | Uint8Array): Promise<string> {
  const path = join(folder, 'grants.yaml');
  await writeFile(path, content);
  return path;
}
const lines = (count: number): string => Array.from({ length: count }, (_, at) => `- {who: everyone, where: photos/${at}/}\n`).join('');

describe('the file of grants', () => {
  it.each([
    ['none', '[]', []],
    ['none, with a comment', '# nobody yet\n[]\n', []],
    [
      'entries in their one form',
      '- who: user:Bob@Example.com\n  where: photos/2026/\n- who: group:a "b"\n  where: videos/\n- {who: everyone, where: "*"}\n',
      [
        { who: 'user:bob@example.com', where: 'photos/2026/' },
        { who: 'group:a "b"', where: 'videos' },
        { who: 'everyone', where: '*' },
      ],
    ],
    ['JSON', '[{"who": "everyone", "where": "photos/\\ud83d\\ude00"}]', [{ who: 'everyone', where: 'photos/\u{1f600}' }]],
    ['a byte order mark', '\ufeff- {who: everyone, where: photos}\n', [{ who: 'everyone', where: 'photos' }]],
  ])('has %s', async (_, text, entries) => {
    expect(await readGrantsFile(await fileOf(text))).toEqual(entries);
  });

  it('may have the most grants that there may be', async () => {
    expect(await readGrantsFile(await fileOf(lines(GRANTS_MAX)))).toHaveLength(GRANTS_MAX);
  });

  it.each([
    ['nothing', '', 'write [] for no grants'],
    ['a comment alone', '# nobody yet\n', 'write [] for no grants'],
    ['null', 'null', 'write [] for no grants'],
    ['a map', 'everyone: photos', 'must be a list'],
    ['a text', 'everyone', 'must be a list'],
    ['two documents', '- {who: everyone, where: photos}\n---\n- {who: everyone, where: videos}\n', 'not YAML'],
    ['no YAML', '- who: [', 'not YAML'],
    ['a tab for spaces', '- who: everyone\n\twhere: photos\n', 'not YAML'],
    ['a star without quotes', '- {who: everyone, where: *}', 'in quotes'],
    ['an alias', '- &a {who: everyone, where: photos}\n- *a\n', 'not YAML'],
    ['an alias of a text', '- {who: &a everyone, where: photos}\n- {who: *a, where: videos}\n', 'not YAML'],
    ['the same field twice', '- {who: everyone, where: photos, where: videos}', 'not YAML'],
    ['a tag', '- !deny {who: everyone, where: photos}', 'not YAML'],
    ['an entry that is no map', '- {who: everyone, where: photos}\n- everyone\n', 'entry 2: '],
    ['an entry without where', '- {who: everyone, where: photos}\n- who: everyone\n', 'entry 2, where: '],
    ['a field that there is not', '- {who: everyone, where: photos, deny: true}', 'entry 1: '],
    ['no one', '- {who: everyone, where: photos}\n- {who: bob, where: photos}\n', 'entry 2, who: must be user:EMAIL'],
    ['a number', '- {who: everyone, where: 2026}', 'entry 1, where: '],
    ['no bucket', '- {who: everyone, where: /photos}', 'entry 1, where: must be BUCKET'],
    ['half of a surrogate pair', '[{"who": "everyone", "where": "photos/\\ud83d"}]', 'entry 1, where: '],
    ['a block of text, which ends with a line feed', '- who: everyone\n  where: |\n    photos/2026/\n', 'line feed'],
    ['one entry more than there may be', lines(GRANTS_MAX + 1), `more than ${GRANTS_MAX} entries`],
    ['too many bytes', `# ${'x'.repeat(POLICY_BYTES_MAX)}\n[]`, 'MiB'],
    ['what is no UTF-8', Buffer.from('- {who: everyone, where: photos/\u00fc}', 'latin1'), 'cannot be read'],
  ])('with %s is refused as a whole', async (_, text, message) => {
    const path = await fileOf(text);
    const refusal = await readGrantsFile(path).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(GrantsFileError);
    const said = String(refusal);
    expect(said).toContain(message);
    expect(said).toContain(`TALLY_GRANTS_FILE: ${path}`);
    expect(said).toContain('until then the grants stay as they were');
    expect(said.split('\n')).toHaveLength(1);
  });

  it.each([
    ['that is not there', 'none.yaml'],
    ['that is a folder', '.'],
  ])('%s is refused', async (_, name) => {
    await expect(readGrantsFile(join(folder, name))).rejects.toThrow(/cannot be read/);
  });
});
