import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readTextFile } from '../../src/process/text-file.ts';

it('reads a file whole, and none that is longer than its bound', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tally-text-'));
  try {
    const path = join(folder, 'a');
    writeFileSync(path, 'ü'.repeat(100_000));
    expect(readTextFile(path, 200_000)).toBe('ü'.repeat(100_000));
    expect(readTextFile(path, 199_999)).toBeUndefined();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
