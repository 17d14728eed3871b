import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPrivateFile, readTextFile } from '../../src/adapters/private-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tally-private-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a private file', () => {
  it('has the mode 0600 and all that was written', () => {
    const path = join(folder, 'a');
    const file = createPrivateFile(path);
    const long = `${'ü'.repeat(100_000)}\n`;
    file.write('first\n');
    file.write(long);
    file.keep();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8')).toBe(`first\n${long}`);
    expect(readTextFile(path, 1_000_000)).toBe(`first\n${long}`);
    expect(readTextFile(path, 1_000)).toBeUndefined();
  });

  it('is gone once it is dropped', () => {
    const path = join(folder, 'a');
    const file = createPrivateFile(path);
    file.write('part');
    file.drop();
    expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
  });

  it('replaces no file, and follows no link', () => {
    const [path, link] = [join(folder, 'a'), join(folder, 'link')];
    writeFileSync(path, 'older');
    symlinkSync(join(folder, 'elsewhere'), link);
    for (const taken of [path, link]) expect(() => createPrivateFile(taken)).toThrow(/EEXIST/);
    expect(readFileSync(path, 'utf8')).toBe('older');
    expect(statSync(join(folder, 'elsewhere'), { throwIfNoEntry: false })).toBeUndefined();
  });
});
