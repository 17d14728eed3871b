/** Lint that matches nothing is silent: each rule of the source tree is broken once, to see it speak. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
/** A file without any violation. */
const FINE = 'src/domain/fine.ts';

const planted: readonly (readonly [name: string, file: string, source: string, says: RegExp])[] = [
  [
    'domain imports pipeline',
    'src/domain/a.ts',
    "import { x } from '../pipeline/ports/clock.ts';\nexport const y = x;\n",
    /domain is pure/,
  ],
  [
    'a folder of domain imports adapters',
    'src/domain/events/a.ts',
    "import { x } from '../../adapters/system-clock.ts';\nexport const y = x;\n",
    /domain is pure/,
  ],
  ['domain does I/O', 'src/domain/b.ts', "import { readFileSync } from 'node:fs';\nexport const y = readFileSync('x');\n", /no I\/O/],
  ['domain reads the clock', 'src/domain/c.ts', 'export const y = Date.now();\n', /no-restricted-properties/],
  [
    'domain draws random bytes',
    'src/domain/random.ts',
    "import { randomBytes } from 'node:crypto';\nexport const y = randomBytes(1);\n",
    /random values are arguments/,
  ],
  ['domain knows a vendor', 'src/domain/d.ts', "import { pino } from 'pino';\nexport const y = pino;\n", /knows no vendor/],
  ['domain imports the contract', 'src/domain/e.ts', "import { x } from '../api/contract.ts';\nexport const y = x;\n", /domain is pure/],
  [
    'the contract imports a verb',
    'src/api/a.ts',
    "import { x } from '../pipeline/control/verbs.ts';\nexport const y = x;\n",
    /domain and zod only/,
  ],
  ['the contract knows a vendor', 'src/api/b.ts', "import { fastify } from 'fastify';\nexport const y = fastify;\n", /domain and zod only/],
  [
    'pipeline imports an adapter',
    'src/pipeline/ingest/a.ts',
    "import { x } from '../../adapters/system-clock.ts';\nexport const y = x;\n",
    /ports only/,
  ],
  [
    'pipeline knows a vendor',
    'src/pipeline/b.ts',
    "import { S3Client } from '@aws-sdk/client-s3';\nexport const y = S3Client;\n",
    /knows no vendor/,
  ],
  [
    'pipeline knows how it is traced',
    'src/pipeline/g.ts',
    "import { trace } from '@opentelemetry/api';\nexport const y = trace;\n",
    /knows no vendor/,
  ],
  [
    'http knows the SDK of the tools',
    'src/http/tools.ts',
    "import { Server } from '@modelcontextprotocol/sdk/server/index.js';\nexport const y = Server;\n",
    /only adapters import/,
  ],
  [
    'an adapter imports a verb',
    'src/adapters/aws/a.ts',
    "import { x } from '../../pipeline/ingest/data-path.ts';\nexport const y = x;\n",
    /ports only/,
  ],
  [
    'an adapter imports http',
    'src/adapters/b.ts',
    "import { x } from '../http/server.ts';\nexport const y = x;\n",
    /adapters implement ports/,
  ],
  [
    'http imports an adapter',
    'src/http/a.ts',
    "import { x } from '../adapters/system-clock.ts';\nexport const y = x;\n",
    /knows no adapter/,
  ],
  [
    'a command imports a vendor',
    'src/cli/a.ts',
    "import { S3Client } from '@aws-sdk/client-s3';\nexport const y = S3Client;\n",
    /only adapters import/,
  ],
  [
    'the panel imports a value of the contract',
    'src/panel/browser/a.ts',
    "import { contract } from '../../api/contract.ts';\nexport const y = contract;\n",
    /imports types only/,
  ],
  ['the panel imports zod', 'src/panel/browser/b.ts', "import { z } from 'zod';\nexport const y = z;\n", /has no zod/],
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
