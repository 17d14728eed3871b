import type { Command } from 'commander';
import { LETTERS_MAX, type LetterChoice } from '../api/dead-letters.ts';
import { printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { groupOf } from './from-rows.ts';

interface ChoiceOptions extends JsonOption {
  readonly all?: true;
  readonly yes?: true;
}

const ID = '5fea7756-0ea4-451a-a703-a558b933e274';

/** `tally dead-letters replay|discard`. */
export function addDeadLetterCommands(program: Command, cli: Cli): void {
  const deadLetters = groupOf(program, ['dead-letters'], 'tally dead-letters list');
  addReplay(deadLetters, cli);
  addDiscard(deadLetters, cli);
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
