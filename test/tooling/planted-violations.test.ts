/** Lint that matches nothing is silent: each rule of the source tree is broken once, to see it speak. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
/** A file without any violation. */
const FINE = 'src/base/fine.ts';

/** A file that imports one value. */
const importing = (name: string, from: string): string => `import { ${name} } from '${from}';\nexport const y = ${name};\n`;

const planted: readonly (readonly [name: string, file: string, source: string, says: RegExp])[] = [
  ['a rule imports work', 'src/repair/a.rules.ts', importing('x', './close-gaps.ts'), /it imports what is pure/],
  ['a pure room imports the clock', 'src/records/a.ts', importing('x', '../process/clock.ts'), /it imports what is pure/],
  ['a folder of a pure room imports an adapter', 'src/events/a/a.ts', importing('x', '../../aws/clients.ts'), /it imports what is pure/],
  ['a rule does I/O', 'src/connect/b.rules.ts', importing('readFileSync', 'node:fs'), /no I\/O/],
  ['a pure room does I/O', 'src/ordering/b.ts', importing('readFileSync', 'node:fs'), /no I\/O/],
  ['a rule reads the clock', 'src/repair/c.rules.ts', 'export const y = Date.now();\n', /no-restricted-properties/],
  ['a pure room reads the clock', 'src/base/c.ts', 'export const y = Date.now();\n', /no-restricted-properties/],
  ['a rule draws random bytes', 'src/identity/random.rules.ts', importing('randomBytes', 'node:crypto'), /random values are arguments/],
  ['a rule knows a vendor', 'src/search/d.rules.ts', importing('pino', 'pino'), /knows no vendor/],
  ['a rule imports the contract', 'src/repair/e.rules.ts', importing('x', '../registry/contract/contract.ts'), /it imports what is pure/],
  ['the contract imports work', 'src/registry/contract/a.ts', importing('x', '../../repair/close-gaps.ts'), /what is pure and zod only/],
  ['the contract imports its server', 'src/registry/contract/c.ts', importing('x', '../server.ts'), /what is pure and zod only/],
  ['the contract knows a vendor', 'src/registry/contract/b.ts', importing('fastify', 'fastify'), /what is pure and zod only/],
  ['a room imports the composition', 'src/indexer/a.ts', importing('x', '../serve/core.ts'), /the edge of the process/],
  ['a room imports the settings', 'src/repair/a.ts', importing('x', '../settings/settings.ts'), /the edge of the process/],
  ['a room knows a vendor', 'src/indexer/b.ts', importing('S3Client', '@aws-sdk/client-s3'), /only adapters import/],
  [
    'the contract of a store knows a vendor',
    'src/store/b.ts',
    importing('Client', '@opensearch-project/opensearch'),
    /only adapters import/,
  ],
  [
    'the registry knows the SDK of the tools',
    'src/registry/t.ts',
    importing('Server', '@modelcontextprotocol/sdk/server/index.js'),
    /only adapters import/,
  ],
  ['an adapter imports a room above it', 'src/aws/a.ts', importing('x', '../indexer/data-path.ts'), /imports records and rules/],
  ['a store imports a room above it', 'src/store/sqlite/a.ts', importing('x', '../../repair/close-gaps.ts'), /imports records and rules/],
  ['a command imports a vendor', 'src/cli/a.ts', importing('S3Client', '@aws-sdk/client-s3'), /only adapters import/],
  [
    'the panel imports a value of the contract',
    'src/panel/browser/a.ts',
    importing('x', '../../registry/contract/contract.ts'),
    /imports types only/,
  ],
  ['the panel imports zod', 'src/panel/browser/b.ts', importing('z', 'zod'), /has no zod/],
  [
    'the panel makes markup of a text',
    'src/panel/browser/c.ts',
    "export const y = (x: Element): void => {\n  x.innerHTML = 'x';\n};\n",
    /never markup/,
  ],
  ['the environment is read outside main.ts', 'src/indexer/c.ts', "export const y = process.env['X'];\n", /no-process-env/],
  ['any', 'src/indexer/d.ts', 'export const y: any = 1;\n', /no-explicit-any/],
  ['a bare !', 'src/indexer/e.ts', 'export const y = (x: string | undefined): number => x!.length;\n', /no-non-null-assertion/],
  ['a default export', 'src/indexer/f.ts', 'export default 1;\n', /no-default-export/],
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
