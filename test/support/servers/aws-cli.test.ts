/** Calls that share one started AWS CLI end as calls of the AWS CLI do. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
    const ends = [started.command, `'${findProgram(AWS_CLI)}'`].map((aws) => runProgram('/bin/sh', ['-c', `${aws} ${words}`], { env }));
    const [shared, plain] = await Promise.all(ends);
    expect(shared).toEqual(plain);
  });
});
