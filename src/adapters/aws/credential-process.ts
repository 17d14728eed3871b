/** Runs the `credential_process` of a profile for the SDK, with a limit: the SDK itself waits for it without one. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { externalDataInterceptor } from '@smithy/core/config';

/** The SDK starts a command that failed a second time, in the next link of its chain. One that was too late is not started again that soon. */
const RESTART_MS = 250;
/** Credentials take a few kilobytes. */
const OUTPUT_BYTES_MAX = 1_048_576;

/**
 * From now on the SDK's credential processes are ended after the limit, with what they started. Their errors
 * contain what they wrote to stderr, and never the command, whose arguments can be secrets.
 */
export function limitCredentialProcesses(limitMs: number): void {
  let late: { readonly command: string; readonly atMs: number } | undefined;

  async function run(command: string): Promise<{ readonly stdout: string }> {
    if (late?.command === command && performance.now() - late.atMs < RESTART_MS) throw lateError();
    // without input, a process that asks for a code at its standard input ends; it still has the terminal
    const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = Promise.withResolvers<number | null>();
    child.once('error', ended.reject).once('close', ended.resolve);
    const timer = setTimeout(() => {
      late = { command, atMs: performance.now() };
      // not by its end, because a process that is left over can hold its output open
      ended.reject(lateError());
      endWithChildren(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
    }, limitMs);
    const [stdout, stderr] = [outputOf(child.stdout), outputOf(child.stderr)];
    try {
      const exitCode = await ended.promise;
      if (exitCode !== 0) throw new Error(`the credential_process failed with exit code ${exitCode}: ${stderr().trim()}`);
      return { stdout: stdout() };
    } finally {
      clearTimeout(timer);
    }
  }

  const lateError = (): Error => new Error(`the credential_process gave no answer within ${limitMs} ms and was ended`);
  // the SDK looks for another `exec` among its test data, and takes it through promisify
  const exec = Object.assign(() => undefined, { [promisify.custom]: run });
  Object.assign(externalDataInterceptor.getTokenRecord(), { exec });
}

/** Collects what a process writes, as much as credentials can need. Returns the function that reads it. */
function outputOf(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  stream.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes <= OUTPUT_BYTES_MAX) chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString();
}

/** Ends the shell and what it started. A process group would end them as well, but would take the terminal from the command. */
function endWithChildren(pid: number | undefined): void {
  if (pid === undefined) return;
  for (const child of childrenOf(pid)) endWithChildren(child);
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it ended in the meantime
  }
}

/** The children of a process, by Linux. Elsewhere only the shell is ended. */
function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
