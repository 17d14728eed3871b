/** Lint that matches nothing is silent: each rule of the source tree is broken once, to see it speak. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
/** A file without any violation. */
const FINE = 'src/domain/fine.ts';

/** A file that imports one value. */
const importing = (name: string, from: string): string => `import { ${name} } from '${from}';\nexport const y = ${name};\n`;

const planted: readonly (readonly [name: string, file: string, source: string, says: RegExp])[] = [
  ['domain imports pipeline', 'src/domain/a.ts', importing('x', '../pipeline/ports/clock.ts'), /domain is pure/],
  ['a folder of domain imports adapters', 'src/domain/events/a.ts', importing('x', '../../adapters/system-clock.ts'), /domain is pure/],
  ['domain does I/O', 'src/domain/b.ts', importing('readFileSync', 'node:fs'), /no I\/O/],
  ['domain reads the clock', 'src/domain/c.ts', 'export const y = Date.now();\n', /no-restricted-properties/],
  ['domain draws random bytes', 'src/domain/random.ts', importing('randomBytes', 'node:crypto'), /random values are arguments/],
  ['domain knows a vendor', 'src/domain/d.ts', importing('pino', 'pino'), /knows no vendor/],
  ['domain imports the contract', 'src/domain/e.ts', importing('x', '../api/contract.ts'), /domain is pure/],
  ['the contract imports the control plane', 'src/api/a.ts', importing('x', '../pipeline/control/operations.ts'), /domain and zod only/],
  ['the contract knows a vendor', 'src/api/b.ts', importing('fastify', 'fastify'), /domain and zod only/],
  ['pipeline imports an adapter', 'src/pipeline/ingest/a.ts', importing('x', '../../adapters/system-clock.ts'), /ports only/],
  ['pipeline knows a vendor', 'src/pipeline/b.ts', importing('S3Client', '@aws-sdk/client-s3'), /knows no vendor/],
  [
    'http knows the SDK of the tools',
    'src/http/t.ts',
    importing('Server', '@modelcontextprotocol/sdk/server/index.js'),
    /only adapters import/,
  ],
  ['an adapter imports the data path', 'src/adapters/aws/a.ts', importing('x', '../../pipeline/ingest/data-path.ts'), /ports only/],
  ['an adapter imports http', 'src/adapters/b.ts', importing('x', '../http/server.ts'), /adapters implement ports/],
  ['http imports an adapter', 'src/http/a.ts', importing('x', '../adapters/system-clock.ts'), /knows no adapter/],
  ['a command imports a vendor', 'src/cli/a.ts', importing('S3Client', '@aws-sdk/client-s3'), /only adapters import/],
  ['the panel imports a value of the contract', 'src/panel/browser/a.ts', importing('x', '../../api/contract.ts'), /imports types only/],
  ['the panel imports zod', 'src/panel/browser/b.ts', importing('z', 'zod'), /has no zod/],
  [
    'the panel makes markup of a text',
    'src/panel/browser/c.ts',
    "export const y = (x: Element): void => {\n  x.innerHTML = 'x';\n};\n",
    /never markup/,
  ],
  ['the environment is read outside main.ts', 'src/pipeline/c.ts', "export const y = process.env['X'];\n", /no-process-env/],
  ['any', 'src/pipeline/d.ts', 'export const y: any = 1;\n', /no-explicit-any/],
  ['a bare !', 'src/pipeline/e.ts', 'export const y = (x: string | undefined): number => x!.length;\n', /no-non-null-assertion/],
  ['a default export', 'src/pipeline/f.ts', 'export default 1;\n', /no-default-export/],
];

/** What lint says of each file. One process looks at all: each takes longer to start than to look. */
const found = new Map<string, string>();

beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), 'tally-lint-'));
  try {
    const sources = [...planted.map(([, file, source]) => [file, source] as const), [FINE, 'export const fine = 1;\n'] as const];
    for (const [file, source] of sources) {
      const path = join(folder, file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, source);
    }
    const { number_of_files, diagnostics } = lint(folder);
    expect(number_of_files).toBe(sources.length);
    for (const [file] of sources) {
      const errors = diagnostics.filter(({ filename, severity }) => severity === 'error' && filename.endsWith(`/${file}`));
      found.set(file, errors.map((error) => JSON.stringify(error)).join('\n'));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.each(planted)('lint refuses: %s', (_name, file, _source, says) => {
  expect(found.get(file)).toMatch(says);
});

test('what breaks no rule passes', () => {
  expect(found.get(FINE)).toBe('');
});

interface Report {
  readonly number_of_files: number;
  readonly diagnostics: readonly {
    readonly filename: string;
    readonly severity: string;
    readonly code: string;
    readonly message: string;
  }[];
}

function lint(folder: string): Report {
  const command = join(root, 'node_modules/.bin/oxlint');
  const words = ['--config', join(root, 'config/tooling/oxlint.json'), '--format', 'json', folder];
  const { status, stdout } = spawnSync(command, words, { encoding: 'utf8' });
  expect(status, stdout).toBe(1);
  return JSON.parse(stdout) as Report;
}
