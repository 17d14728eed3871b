import type { Command } from 'commander';
import type { DeadLetter, LetterChoice, WholeDeadLetter } from '../api/dead-letters.ts';
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
    .summary('list, show, replay and discard messages that could not be handled')
    .description(
      'Shows messages that could not be handled, sends them back or deletes them. While one command reads letters, another command sees only the rest.',
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
    .description('Lists dead letters with their faults. No letter is removed.')
    .addOption(limitOption());
  printing(list, 'tally dead-letters list --limit 20').action(async (options: JsonOption & { readonly limit?: number }) => {
    const { json, ...query } = options;
    const { items } = await cli.withControl((control, context) => control.listDeadLetters({ query }, context));
    if (items.length === 0) cli.hint(options, 'There are no dead letters.');
    if (items.length > 0 || json === true) cli.print(options, { items }, () => lettersText(items, cli.nowMs()));
  });
}

function addShow(deadLetters: Command, cli: Cli): void {
  const show = deadLetters
    .command('show')
    .summary('show one dead letter')
    .description('Shows one dead letter with its original body.')
    .argument('<id>', 'the ID that `list` shows');
  printing(show, `tally dead-letters show ${ID}`).action(async (id: string, options: JsonOption) => {
    const letter = await cli.withControl((control, context) => control.getDeadLetter({ params: { id } }, context));
    cli.print(options, letter, () => letterText(letter));
  });
}

function addReplay(deadLetters: Command, cli: Cli): void {
  const replay = deadLetters
    .command('replay')
    .summary('send dead letters back to the bucket queue')
    .description('Sends the original bodies back to the bucket queue and removes the letters. At most 1000 letters are sent at once.')
    .argument('[id...]', 'the IDs of the letters')
    .option('--all', 'all letters');
  printing(replay, `tally dead-letters replay ${ID}`, 'tally dead-letters replay --all').action(
    async (ids: readonly string[], options: ChoiceOptions) => {
      const body = choiceOf(ids, options);
      const answer = await cli.withControl((control, context) => control.replayDeadLetters({ body }, context));
      cli.print(options, answer, () => `Sent back: ${answer.replayed}`);
    },
  );
}

function addDiscard(deadLetters: Command, cli: Cli): void {
  const discard = deadLetters
    .command('discard')
    .summary('delete dead letters')
    .description('Deletes dead letters for good, at most 1000 at once.')
    .argument('[id...]', 'the IDs of the letters')
    .option('--all', 'all letters')
    .option('--yes', 'do not ask for confirmation');
  printing(discard, `tally dead-letters discard ${ID} --yes`, 'tally dead-letters discard --all --yes').action(
    async (ids: readonly string[], options: ChoiceOptions) => {
      const body = choiceOf(ids, options);
      await cli.requireYes(options, `This deletes ${'all' in body ? 'all dead letters' : `dead letters (${ids.length})`} for good`);
      const answer = await cli.withControl((control, context) => control.discardDeadLetters({ body }, context));
      cli.print(options, answer, () => `Deleted: ${answer.discarded}`);
    },
  );
}

function choiceOf(ids: readonly string[], { all }: ChoiceOptions): LetterChoice {
  if ((all === true) === ids.length > 0) throw new CommandError('usage', 'name the letters by their IDs, or use --all');
  return all === true ? { all } : { ids };
}

function lettersText(letters: readonly DeadLetter[], nowMs: number): string {
  return tableText(
    ['ID', 'AGE', 'SIZE', 'FAULT', 'REASON'],
    letters.map((letter) => [letter.id, ageOfText(letter.sent_at, nowMs), sizeText(letter.size_bytes), letter.fault, letter.reason]),
  );
}

function letterText({ id, fault, reason, context, body, ...letter }: WholeDeadLetter): string {
  const fields = fieldsText({
    id,
    sent: letter.sent_at,
    size: sizeText(letter.size_bytes),
    fault: fault ?? 'not stated: SQS itself moved the message here, or there was no room for the reason',
    reason,
    context: context === undefined ? undefined : jsonText(context, 'compact'),
  });
  return `${fields}\n\n${linesText(body)}`;
}
