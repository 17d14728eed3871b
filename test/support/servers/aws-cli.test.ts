/** Calls that share one started AWS CLI end as calls of the AWS CLI do. */
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { canRun, findProgram, runProgram } from '../../docs/programs.ts';
import { AWS_CLI, openAwsCli, type AwsCli } from './aws-cli.ts';

describe.skipIf(!canRun('the calls of the AWS CLI', [AWS_CLI]))('the AWS CLI, started once', () => {
  let started: AwsCli;
  beforeAll(async () => {
    started = await openAwsCli();
  });
  afterAll(() => started.dispose());

  it.each([
    // an answer, of this folder and with an environment
    'configure list --profile "$(basename "$PWD")"',
    // a file of the folder
    'sqs list-queues --cli-input-json file://package.json --generate-cli-skeleton output',
    // no such command
    'nonsense',
    // what comes on standard input
    's3 cp - nowhere < package.json',
  ])('ends as the plain one: aws %s', async (words) => {
    const env = { PATH: process.env['PATH'], HOME: '/nonexistent', AWS_DEFAULT_REGION: 'eu-west-1', AWS_PAGER: '' };
    const ends = [started.command, `'${findProgram(AWS_CLI) ?? ''}'`].map((aws) =>
      runProgram('/bin/sh', ['-c', `${aws} ${words}`], { env }),
    );
    const [shared, plain] = await Promise.all(ends);
    expect(shared).toEqual(plain);
  });
});

describe('an AWS CLI that cannot be started once', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it.each([
    ['is no Python script', '#!/bin/sh\n'],
    ['has a Python that is not there', '#!/nonexistent/python3\n'],
    ['has a Python that ends at once', '#!FOLDER/python\n'],
  ])('is used as it is: one that %s', async (_, text) => {
    const folder = await mkdtemp(join(tmpdir(), 'tally-aws-cli-plain-'));
    const path = join(folder, 'aws');
    await symlink('/bin/false', join(folder, 'python'));
    await writeFile(path, text.replace('FOLDER', folder), { mode: 0o755 });
    vi.stubEnv(AWS_CLI.variable, path);
    const plain = await openAwsCli();
    expect(plain.command).toBe(`'${path}'`);
    await plain.dispose();
    await rm(folder, { recursive: true });
  });
});
