import type { Command } from 'commander';
import type { DeadLetter } from '../pipeline/letters/dead-letters.ts';
import { limitOption, printing, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { ageOfText, sizeText } from './human.ts';
import { fieldsText, jsonText, linesText, tableText } from './output.ts';

interface ChoiceOptions extends JsonOption {
  readonly all?: true;
  readonly yes?: true;
}

const ID = '5fea7756-0ea4-451a-a703-a558b933e274';

/** `tally dead-letters list|show|replay|discard`. */
export function addDeadLetterCommands(program: Command, cli: Cli): void {
  const deadLetters = program
    .command('dead-letters')
    .summary('look at messages that could not be handled')
    .description(
      'Shows messages that could not be handled, sends them back or discards them. While one command looks at letters, another sees only the rest.',
    );
  withExamples(deadLetters, 'tally dead-letters list', 'tally dead-letters replay --all');
  addList(deadLetters, cli);
  addShow(deadLetters, cli);
  addReplay(deadLetters, cli);
  addDiscard(deadLetters, cli);
}

function addList(deadLetters: Command, cli: Cli): void {
  const list = deadLetters
    .command('list')
    .summary('list dead letters')
    .description('Lists dead letters with their faults. None is removed.')
    .addOption(limitOption());
  printing(list, 'tally dead-letters list --limit 20').action(async (options: JsonOption & { readonly limit?: number }) => {
    const { json, ...request } = options;
    const items = await cli.withControl((control) => control.deadLetters.list(request));
    if (items.length === 0) cli.hint(options, 'There are no dead letters.');
    if (items.length > 0 || json === true) cli.print(options, { items }, () => lettersText(items, cli.nowMs()));
  });
}

function addShow(deadLetters: Command, cli: Cli): void {
  const show = deadLetters
    .command('show')
    .summary('show one dead letter')
    .description('Shows one dead letter with its original body.')
    .argument('<id>', 'the ID that list shows');
  printing(show, `tally dead-letters show ${ID}`).action(async (id: string, options: JsonOption) => {
    const letter = await cli.withControl((control) => control.deadLetters.show(id));
    cli.print(options, letter, () => letterText(letter));
  });
}

function addReplay(deadLetters: Command, cli: Cli): void {
  const replay = deadLetters
    .command('replay')
    .summary('send dead letters back to the bucket queue')
    .description('Sends the original bodies back to the bucket queue and removes the letters. At most 1000 at once.')
    .argument('[id...]', 'these letters')
    .option('--all', 'all letters');
  printing(replay, `tally dead-letters replay ${ID}`, 'tally dead-letters replay --all').action(
    async (ids: readonly string[], options: ChoiceOptions) => {
      const chosen = chosenOf(ids, options);
      const replayed = await cli.withControl((control) => control.deadLetters.replay(chosen));
      cli.print(options, { replayed }, () => `Sent back: ${replayed}`);
    },
  );
}

function addDiscard(deadLetters: Command, cli: Cli): void {
  const discard = deadLetters
    .command('discard')
    .summary('delete dead letters')
    .description('Deletes letters for good. At most 1000 at once.')
    .argument('[id...]', 'these letters')
    .option('--all', 'all letters')
    .option('--yes', 'do not ask');
  printing(discard, `tally dead-letters discard ${ID} --yes`, 'tally dead-letters discard --all --yes').action(
    async (ids: readonly string[], options: ChoiceOptions) => {
      const chosen = chosenOf(ids, options);
      await cli.requireYes(options, `This deletes ${chosen === 'all' ? 'all dead letters' : `dead letters (${ids.length})`} for good`);
      const discarded = await cli.withControl((control) => control.deadLetters.discard(chosen));
      cli.print(options, { discarded }, () => `Deleted: ${discarded}`);
    },
  );
}

function chosenOf(ids: readonly string[], { all }: ChoiceOptions): readonly string[] | 'all' {
  if ((all === true) === ids.length > 0) throw new CommandError('usage', 'name letters by their IDs, or give --all');
  return all === true ? 'all' : ids;
}

function lettersText(letters: readonly DeadLetter[], nowMs: number): string {
  return tableText(
    ['ID', 'AGE', 'SIZE', 'FAULT', 'REASON'],
    letters.map(({ id, sentAt, fault, sizeBytes, reason }) => [id, ageOfText(sentAt, nowMs), sizeText(sizeBytes), fault, reason]),
  );
}

function letterText({ id, sentAt, fault, reason, context, sizeBytes, body }: DeadLetter & { readonly body: string }): string {
  const fields = fieldsText({
    id,
    sent: sentAt,
    size: sizeText(sizeBytes),
    fault: fault ?? 'not stated: SQS itself moved it here, or its reason had no room',
    reason,
    context: context === undefined ? undefined : jsonText(context, 'compact'),
  });
  return `${fields}\n\n${linesText(body)}`;
}
