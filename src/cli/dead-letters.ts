import type { Command } from 'commander';
import { printable } from '../domain/printable.ts';
import type { DeadLetter } from '../pipeline/control.ts';
import { limitOption } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { fieldsText, jsonText, linesText, tableText } from './output.ts';

interface ChoiceOptions extends JsonOption {
  readonly all?: boolean;
  readonly yes?: boolean;
}

/** `tally dead-letters list|show|replay|discard`. */
export function addDeadLetterCommands(program: Command, cli: Cli): void {
  const deadLetters = program.command('dead-letters').description('look at messages that could not be handled; replay or discard them');
  addList(deadLetters, cli);
  addShow(deadLetters, cli);
  addReplay(deadLetters, cli);
  addDiscard(deadLetters, cli);
}

function addList(deadLetters: Command, cli: Cli): void {
  deadLetters
    .command('list')
    .description('list dead letters with their faults; none is removed')
    .addOption(limitOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally dead-letters list --limit 20')
    .action((options: JsonOption & { readonly limit?: number }) =>
      cli.withControl(async (control) => {
        const items = await control.deadLetters.list(options.limit === undefined ? {} : { limit: options.limit });
        cli.print(options, { items }, () => (items.length === 0 ? 'No dead letters.' : lettersText(items)));
      }),
    );
}

function addShow(deadLetters: Command, cli: Cli): void {
  deadLetters
    .command('show')
    .description('show one dead letter with its original body')
    .argument('<id>', 'the ID that list shows')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally dead-letters show 5fea7756-0ea4-451a-a703-a558b933e274')
    .action((id: string, options: JsonOption) =>
      cli.withControl(async (control) => {
        const letter = await control.deadLetters.show(id);
        cli.print(options, letter, () => letterText(letter));
      }),
    );
}

function addReplay(deadLetters: Command, cli: Cli): void {
  deadLetters
    .command('replay')
    .description('send the original bodies back to the bucket queue and remove the letters')
    .argument('[id...]', 'the letters')
    .option('--all', 'all letters')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally dead-letters replay --all')
    .action(async (ids: readonly string[], options: ChoiceOptions, command: Command) => {
      const choice = choiceOf(ids, options, command);
      await cli.withControl(async (control) => {
        const replayed = await control.deadLetters.replay(choice);
        cli.print(options, { replayed }, () => `Replayed: ${replayed}`);
      });
    });
}

function addDiscard(deadLetters: Command, cli: Cli): void {
  deadLetters
    .command('discard')
    .description('remove letters for good')
    .argument('[id...]', 'the letters')
    .option('--all', 'all letters; needs --yes')
    .option('--yes', 'really all')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally dead-letters discard 5fea7756-0ea4-451a-a703-a558b933e274')
    .action(async (ids: readonly string[], options: ChoiceOptions, command: Command) => {
      const choice = choiceOf(ids, options, command);
      if (choice === 'all' && options.yes !== true) command.error('error: this removes every dead letter for good; repeat it with --yes');
      await cli.withControl(async (control) => {
        const discarded = await control.deadLetters.discard(choice);
        cli.print(options, { discarded }, () => `Discarded: ${discarded}`);
      });
    });
}

function choiceOf(ids: readonly string[], { all }: ChoiceOptions, command: Command): readonly string[] | 'all' {
  if ((all === true) === ids.length > 0) command.error('error: name the letters by their IDs, or give --all');
  return all === true ? 'all' : ids;
}

function lettersText(letters: readonly DeadLetter[]): string {
  return tableText(
    ['ID', 'SENT', 'FAULT', 'BYTES', 'REASON'],
    letters.map(({ id, sentAt, fault, sizeBytes, reason }) => [id, sentAt, fault, sizeBytes, reason]),
  );
}

function letterText(letter: DeadLetter & { readonly body: string }): string {
  const { id, sentAt, fault, reason, context, sizeBytes, body } = letter;
  const fields = fieldsText({
    id,
    sent: sentAt,
    fault: fault ?? 'none: SQS itself moved it here',
    reason,
    context: context === undefined ? undefined : jsonText(context, 'compact'),
    bytes: sizeBytes,
  });
  return `${fields}\n\n${linesText(body)}`;
}
