/** Runs shell blocks of pages as a user pastes them, with other values for the variables at their top. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { AWS_CLI, openAwsCli } from '../support/servers/aws-cli.ts';
import { MAIN } from '../support/servers/program.ts';
import { findProgram, runProgram } from './programs.ts';

const JQ = { name: 'jq', variable: 'TALLY_TEST_JQ' } as const;

const ROOT = new URL('../..', import.meta.url).pathname;
const REGION = 'us-east-1';
/** What a user's own shell would have as well. */
const INHERITED = ['HOME', 'TMPDIR', 'NODE_COMPILE_CACHE'];
/** A value that a user must replace: it stands as it is, and does not come from another variable or a command. */
const EXAMPLE_LINE = /^(?:export )?([A-Z_]+)=([^$"]*)$/;

type Values = Readonly<Record<string, string>>;

export interface PageShell {
  /** First word of the names that are made. */
  readonly prefix: string;
  /** Runs one block, and returns what it printed. Throws when a command fails. */
  runBlock(block: string, variables?: Values, env?: Values): Promise<string>;
  /** The AWS CLI alone. */
  aws(...words: readonly string[]): Promise<string>;
  dispose(): Promise<void>;
}

/** A folder to paste into, with Tally, the AWS CLI and jq on the PATH, and an emulator of AWS behind them. */
export async function openPageShell(endpoint: string, env: Values = {}): Promise<PageShell> {
  const prefix = `tally-test-${randomBytes(4).toString('hex')}`;
  const folder = await mkdtemp(join(tmpdir(), 'tally-connect-'));
  // the page says: in the folder of the repository; what it writes there must not end up in this one
  await symlink(join(ROOT, 'config'), join(folder, 'config'));
  const programs = await mkdtemp(join(tmpdir(), 'tally-programs-'));
  await symlink(findProgram(JQ) ?? '', join(programs, JQ.name));
  await symlink(MAIN, join(programs, 'tally'));
  // version 1 of the AWS CLI, which PyPI has, sends SQS's requests to AWS whatever AWS_ENDPOINT_URL says, unless it is an option
  const awsCli = await openAwsCli();
  const cli = `${awsCli.command} --endpoint-url "$AWS_ENDPOINT_URL"`;
  const account = join(programs, 'account');
  // every block asks for the account: once is enough
  const script = `#!/bin/sh
[ "$1 $2" = 'sts get-caller-identity' ] || exec ${cli} "$@"
[ -e ${account} ] || ${cli} "$@" > ${account}
cat ${account}
`;
  await writeFile(join(programs, AWS_CLI.name), script, { mode: 0o755 });
  const inherited = INHERITED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));
  const all = {
    ...Object.fromEntries(inherited),
    PATH: [programs, process.env['PATH']].join(delimiter),
    AWS_ENDPOINT_URL: endpoint,
    // version 1 of the AWS CLI reads this variable only
    AWS_DEFAULT_REGION: REGION,
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_PAGER: '',
    ...env,
  };

  async function bash(text: string, cwd: string, more: Values = {}): Promise<string> {
    const { code, stdout, stderr } = await runProgram('/bin/bash', ['-euo', 'pipefail', '-c', text], { env: { ...all, ...more }, cwd });
    if (code !== 0) throw new Error(`ended with ${String(code)}: ${stderr}\n${stdout}\n${text}`);
    return stdout;
  }

  async function runBlock(block: string, variables: Values = {}, more: Values = {}): Promise<string> {
    const pasted = withVariables(block, { AWS_REGION: REGION, PREFIX: prefix, ...variables });
    return bash(pasted, folder, more);
  }

  return {
    prefix,
    runBlock,
    aws: (...words) => bash(['aws', ...words.map((word) => `'${word}'`)].join(' '), folder),
    async dispose() {
      await awsCli.dispose();
      await Promise.all([folder, programs].map((each) => rm(each, { recursive: true })));
    },
  };
}

/** The block with these values in the place of its example values. Throws when one is left: nothing may be run against names that nobody chose. */
function withVariables(block: string, variables: Values): string {
  const lines = block.split('\n');
  const end = lines.indexOf('');
  return lines
    .map((line, at) => {
      const [, name] = EXAMPLE_LINE.exec(line) ?? [];
      if (name === undefined || (end !== -1 && at > end)) return line;
      const value = variables[name];
      if (value === undefined) throw new Error(`no value for ${name} in\n${block}`);
      return `${line.startsWith('export ') ? 'export ' : ''}${name}='${value}'`;
    })
    .join('\n');
}
