import type { Command } from 'commander';
import { LETTERS_MAX, type DeadLetter, type LetterChoice, type WholeDeadLetter } from '../api/dead-letters.ts';
import { limitOption, printing, printPage, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { fieldsText, jsonText, linesText, tableText } from './output.ts';
import { ageOfText, sizeText } from '../domain/texts.ts';

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
    const { json: _, ...query } = options;
    const page = await cli.withControl((control, context) => control.listDeadLetters({ query }, context));
    printPage(cli, options, page, { none: 'There are no dead letters.', text: (items) => lettersText(items, cli.nowMs()) });
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
    .description(
      'Sends the original bodies back to the bucket queue and removes the letters. With --all each letter that is there now is sent back once; one that fails again stays.',
    )
    .argument('[id...]', 'the IDs of the letters')
    .option('--all', 'all letters');
  printing(replay, `tally dead-letters replay ${ID}`, 'tally dead-letters replay --all').action(
    async (ids: readonly string[], options: ChoiceOptions) => {
      const body = choiceOf(ids, options);
      const answer = await cli.withControl(async (control, context) => {
        const { taken, remaining } = await takeAll(body, { cli, options }, async (each) => {
          const { replayed, remaining: left } = await control.replayDeadLetters({ body: each }, context);
          return { taken: replayed, remaining: left };
        });
        return { replayed: taken, remaining };
      });
      cli.print(options, answer, () => takenText('Sent back', answer.replayed, answer.remaining));
    },
  );
}

function addDiscard(deadLetters: Command, cli: Cli): void {
  const discard = deadLetters
    .command('discard')
    .summary('delete dead letters')
    .description('Deletes dead letters for good. With --all these are the letters that are there now.')
    .argument('[id...]', 'the IDs of the letters')
    .option('--all', 'all letters')
    .option('--yes', 'do not ask for confirmation');
  printing(discard, `tally dead-letters discard ${ID} --yes`, 'tally dead-letters discard --all --yes').action(
    async (ids: readonly string[], options: ChoiceOptions) => {
      const body = choiceOf(ids, options);
      await cli.requireYes(options, `This deletes ${'all' in body ? 'all dead letters' : `dead letters (${ids.length})`} for good`);
      const answer = await cli.withControl(async (control, context) => {
        const { taken, remaining } = await takeAll(body, { cli, options }, async (each) => {
          const { discarded, remaining: left } = await control.discardDeadLetters({ body: each }, context);
          return { taken: discarded, remaining: left };
        });
        return { discarded: taken, remaining };
      });
      cli.print(options, answer, () => takenText('Deleted', answer.discarded, answer.remaining));
    },
  );
}

interface Taken {
  readonly taken: number;
  readonly remaining: number;
}

/** Repeats the act on all letters while a request takes as many as one may. It ends with those that were there at the beginning. */
async function takeAll(
  body: LetterChoice,
  { cli, options }: { readonly cli: Cli; readonly options: JsonOption },
  act: (body: LetterChoice) => Promise<Taken>,
): Promise<Taken> {
  let { taken, remaining } = await act(body);
  const all = taken + remaining;
  let isMore = 'all' in body && taken >= LETTERS_MAX && remaining > 0;
  while (isMore) {
    cli.hint(options, `${taken} of about ${all} letters are done.`);
    const next = await act(body);
    taken += next.taken;
    remaining = next.remaining;
    // letters that were sent back and failed again have come since
    isMore = next.taken >= LETTERS_MAX && remaining > 0 && taken < all;
  }
  return { taken, remaining };
}

function takenText(what: string, taken: number, remaining: number): string {
  return remaining === 0 ? `${what}: ${taken}` : `${what}: ${taken}. About ${remaining} remain, or came meanwhile.`;
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
