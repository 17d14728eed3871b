/**
 * Every command of Tally that a running product prints (its log, its answers, its errors and the remedies in them) is run
 * literally, by a shell, in the folder and with the settings where it was printed; so is what those runs print, until nothing
 * new is printed. None of them may be wrong usage. What they do otherwise is theirs: the world is the test's own.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { embeddedQueues, embeddedQueueUrl } from '../../src/adapters/embedded/addresses.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { until } from '../support/servers/aws.ts';
import { startDaemon, type Daemon } from '../support/servers/daemon.ts';
import { MAIN, ownVariables } from '../support/servers/program.ts';

/** More than are found, and few enough to end: each is a process. */
const COMMANDS_MAX = 60;
/** Some wait for what never comes here, like a re-index that nobody works on; that they began is enough. */
const COMMAND_MS = 20_000;

/** What people do first, and mistakes of theirs: each answer names what to type next. */
const FIRST = [
  'bucket list',
  "bucket add 'no-such-bucket'",
  'bucket add demo --plan',
  'doctor demo',
  'doctor nobody',
  'gaps',
  'gaps --bucket demo',
  "explain demo 'it''s not there'",
  'search nothing',
  'search --bucket nobody word',
  'search --limit 1 --sort size',
  'reindex nobody',
  'reindex demo',
  'drift demo',
  'jobs',
  'dead-letters list',
  'dead-letters show 5fea7756-0ea4-451a-a703-a558b933e274',
  'dead-letters discard --all',
  'keys list',
  'whoami',
  'login',
  'admin users list',
  'iam-policy',
  'config',
  'bucket set demo --source routed',
  'bucket set demo --enrich tags',
  'bucket list',
  'gaps',
  'bucket remove demo',
  'bucket list',
];

interface Ended {
  readonly exitCode: number | undefined;
  readonly text: string;
}

let daemon: Daemon;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tally-printed-'));
  mkdirSync(join(folder, 'bin'));
  symlinkSync(MAIN, join(folder, 'bin/tally'));
  daemon = await startDaemon({ TALLY_EMBEDDED: 'true', TALLY_EMBEDDED_DATA: join(folder, 'data') });
  await daemon.ready();
  const object = await fetch(`${daemon.embeddedUrl}/demo/docs/it's%20here.txt`, { method: 'PUT', body: 'text' });
  expect(object.status).toBe(200);
  // what can never succeed is a dead letter, beside the object
  expect((await send('no event')).status).toBe(200);
  await until('the letter is there', async () => (await daemon.metric('tally_dead_letters_total')) > 0);
});
afterAll(async () => {
  await daemon?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends a message to the bucket queue. */
function send(body: string): Promise<Response> {
  const headers = { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.SendMessage' };
  const message = { QueueUrl: embeddedQueueUrl(daemon.embeddedUrl, embeddedQueues.bucket), MessageBody: body };
  return fetch(daemon.embeddedUrl, { method: 'POST', headers, body: JSON.stringify(message) });
}

/** Runs a line in a shell as a person there would. */
function shell(line: string): Promise<Ended> {
  const { PATH = '', TMPDIR, NODE_COMPILE_CACHE } = process.env;
  const env = {
    ...ownVariables(),
    PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${PATH}`,
    HOME: folder,
    ...(TMPDIR !== undefined && { TMPDIR }),
    ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
    TALLY_REGISTRY_URL: daemon.controlUrl,
  };
  return new Promise((resolve) => {
    execFile('bash', ['-c', `exec ${line}`], { cwd: folder, env, timeout: COMMAND_MS }, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      resolve({ exitCode: typeof code === 'number' ? code : undefined, text: `${stdout}\n${stderr}` });
    });
  });
}

/** The commands in a text: in backticks, or as a line. */
function commandsIn(text: string): readonly string[] {
  const inline = [...text.matchAll(/`([^`\n]+)`/g)].map(([, command = '']) => command);
  return [...inline, ...text.split('\n').map((line) => line.trim())].filter((each) => each.startsWith('tally '));
}

/** A person at the terminal is asked first, and agrees. */
async function run(command: string): Promise<Ended> {
  const ended = await shell(command);
  return ended.text.includes('repeat the command with --yes') ? shell(`${command} --yes`) : ended;
}

it('each command that is printed is one that can be typed where it was printed', async () => {
  const waiting = FIRST.map((command) => `tally ${command}`);
  const done = new Map<string, Ended>();
  const printed = new Set<string>();
  const note = (text: string): void => {
    for (const command of commandsIn(text)) {
      if (printed.has(command)) continue;
      printed.add(command);
      // while what it is about is there
      waiting.unshift(command);
    }
  };
  note(daemon.text);
  note(daemon.log.flatMap((line) => Object.values(line).filter((value) => typeof value === 'string')).join('\n'));
  for (let command = waiting.shift(); command !== undefined && done.size < COMMANDS_MAX; command = waiting.shift()) {
    const ended = await run(command);
    done.set(command, ended);
    note(ended.text);
  }
  expect(waiting).toEqual([]);
  const wrong = [...printed].filter((command) => {
    const { exitCode, text = '' } = done.get(command) ?? {};
    return exitCode === exitCodes.usage || /unknown (?:command|option)|command not found|syntax error/.test(text);
  });
  expect(wrong.map((command) => `${command}\n${done.get(command)?.text}`)).toEqual([]);
  // where they are known to be
  expect([...printed]).toEqual(
    expect.arrayContaining(['bucket list', 'reindex demo --fill', 'admin keys list'].map((each) => `tally ${each}`)),
  );
  expect(daemon.isRunning).toBe(true);
});
