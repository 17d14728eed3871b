/** What every command that is made from a row promises: its help, its request, its output and its exit codes. */
import { describe, expect, it } from 'vitest';
import { rowsOfControlPlane } from '../../src/api/contract.ts';
import { FaultError } from '../../src/domain/fault.ts';
import { UNPRINTABLE } from '../../src/domain/printable.ts';
import { RequestError } from '../../src/domain/request-error.ts';
import { createCliWorld } from './world.ts';

const commands = rowsOfControlPlane.flatMap((row) => [row.cli ?? []].flat().map((command) => ({ row, command, words: command.words })));

/** The words of an example, without the name of the program. */
function argumentsOf(example: string): readonly string[] {
  return [...example.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, ...found]) => found.find((word) => word !== undefined) ?? '').slice(1);
}

/** What a terminal would act on. */
function unsafeIn(text: string): readonly string[] {
  return text.match(UNPRINTABLE)?.filter((character) => character !== '\n') ?? [];
}

describe.each(commands)('tally $words', ({ row, command }) => {
  const [example] = command.examples;
  const words = [...argumentsOf(example), ...(command.confirm === undefined ? [] : ['--yes'])];

  it('shows its examples in its help', async () => {
    const { stdout } = await createCliWorld().run(`${command.words.replaceAll(/ [<[].*/g, '')} --help`);
    for (const each of command.examples) expect(stdout).toContain(`\n  ${each}`);
    expect(stdout).toContain('--json');
  });

  it.each(command.examples)('asks the registry as its example says: %s', async (each) => {
    const world = createCliWorld();
    const { exitCode } = await world.run('', ...argumentsOf(each), ...(command.confirm === undefined ? [] : ['--yes']));
    expect([exitCode, world.asked[0]?.[0]]).toEqual([0, row.operation]);
  });

  it('prints the answer with --json and nothing else', async () => {
    const { exitCode, stdout, stderr } = await createCliWorld().run('', ...words, '--json');
    expect([exitCode, stderr]).toEqual([0, '']);
    const printed: unknown = JSON.parse(stdout);
    expect(row.answer?.parse(printed) ?? printed).toEqual(printed);
    expect(unsafeIn(stdout)).toEqual([]);
  });

  it('prints its columns, and what it has to say where there is nothing', async () => {
    const world = createCliWorld();
    const { stdout } = await world.run('', ...words);
    expect(unsafeIn(stdout)).toEqual([]);
    if (command.none === undefined) return expect(stdout.trim()).not.toBe('');
    for (const heading of Object.keys(command.columns ?? {})) expect(stdout.split('\n')[0]).toContain(heading);
    world.nextAnswers({ items: [] });
    const empty = await world.run('', ...words);
    expect([empty.exitCode, empty.stdout]).toEqual([0, '']);
    expect(empty.stderr).not.toBe('');
  });

  it.each([
    [new RequestError('request.not-found', 'there is none'), 1],
    [new RequestError('request.invalid', 'it is none'), 64],
    [new FaultError('index.unreachable', 'no answer'), 69],
  ])('ends as it failed: %s', async (error, exitCode) => {
    const world = createCliWorld();
    world.nextFails(error);
    expect(await world.run('', ...words)).toMatchObject({ exitCode, stdout: '' });
  });
});
