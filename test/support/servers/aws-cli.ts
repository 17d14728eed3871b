/** The AWS CLI for scripts with many calls: the real one, started once where its Python is found (aws-cli.py). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { findProgram } from '../../docs/programs.ts';

export const AWS_CLI = { name: 'aws', variable: 'TALLY_TEST_AWS_CLI' } as const;

const SERVER = new URL('aws-cli.py', import.meta.url).pathname;
/** Of a script that pip or uv installed; the AWS CLI's own installer brings a program without one. */
const PYTHON_LINE = /^#!(\/\S*python[\d.]*)\n/;
/** More than a line with the longest path. */
const LINE_BYTES_MAX = 4_096;

export interface AwsCli {
  /** What stands for `aws` in a shell. */
  readonly command: string;
  dispose(): Promise<void>;
}

export async function openAwsCli(): Promise<AwsCli> {
  const plain = findProgram(AWS_CLI) ?? '';
  const python = await pythonOf(plain);
  const folder = await mkdtemp(join(tmpdir(), 'tally-aws-cli-'));
  const socket = join(folder, 'socket');
  // its standard input ends with this process at the latest, and so does it
  const server = python === undefined ? undefined : spawn(python, [SERVER, 'serve', socket], { stdio: ['pipe', 'pipe', 'ignore'] });
  const nothing = (): undefined => undefined;
  // also where it cannot be started
  const ended = server && once(server, 'close').then(nothing, nothing);
  // it says so in one line; without one it ended, and the plain one is as good
  const isReady =
    server !== undefined && (await Promise.race([once(createInterface({ input: server.stdout }), 'line'), ended])) !== undefined;
  return {
    command: isReady ? `'${python ?? ''}' -I -S '${SERVER}' call '${socket}'` : `'${plain}'`,
    async dispose() {
      server?.stdin.end();
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

async function pythonOf(path: string): Promise<string | undefined> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LINE_BYTES_MAX));
    return PYTHON_LINE.exec(buffer.toString('utf8', 0, bytesRead))?.[1];
  } finally {
    await file.close();
  }
}
