/** Programs beside Node that a few suites need: found by a variable or on the PATH, and run to their end. */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { noteNotRun } from '../support/not-run.ts';

export interface Program {
  readonly name: string;
  /** The environment variable that gives its path instead. */
  readonly variable: string;
}

export interface ProgramEnd {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The path of a program; undefined when this machine does not have it. */
export function findProgram({ name, variable }: Program): string | undefined {
  const given = process.env[variable];
  if (given !== undefined && given !== '') return given;
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isFound(program: Program): boolean {
  return findProgram(program) !== undefined;
}

/** Whether a suite can run. What is missing is told at the end of the run; with CI=true it is an error, as a missing server is. */
export function canRun(suite: string, programs: readonly Program[], runs = isFound): boolean {
  const missing = programs.filter((program) => !runs(program));
  if (missing.length === 0) return true;
  noteNotRun(suite, missing.map(({ name, variable }) => `${name} (on the PATH or by ${variable})`).join(', '));
  return false;
}

/** Runs a program to its end, whatever its exit code. */
export async function runProgram(
  path: string,
  args: readonly string[],
  { env, cwd }: { readonly env?: Readonly<Record<string, string | undefined>>; readonly cwd?: string } = {},
): Promise<ProgramEnd> {
  const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'pipe'], ...(env && { env }), ...(cwd !== undefined && { cwd }) });
  const parts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      parts[name] += text;
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, ...parts };
}
