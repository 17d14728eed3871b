import { type Command, InvalidArgumentError } from 'commander';
import { shellWord, shellWords } from '../base/commands.ts';
import { changesText } from '../connect/plan.rules.ts';
import type { PlannedPart, SetupPlan } from '../connect/setup.ts';
import { nameOf } from '../connect/shared.rules.ts';
import { withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { linesText } from './output.ts';

interface SetupOptions extends JsonOption {
  readonly region?: string;
  readonly apply?: true;
}

/** `tally setup`. */
export function addSetupCommand(program: Command, cli: Cli): void {
  const setup = program
    .command('setup')
    .summary('create what all buckets share in AWS')
    .description(
      'Shows what all buckets share, and how existing parts differ from the plan: the first queue in TALLY_QUEUE_URL (by default tally-bucket-events in AWS_REGION) with its dead-letter queue, and in that region and in --region two topics with their subscriptions. With --apply, it creates missing parts, corrects the others, and prints the settings to export. Run it once, and again for each additional region with buckets.',
    )
    .option('--region <region>', 'an additional region with buckets', regionIn)
    .option('--apply', 'create missing parts, and correct the others')
    .option('--json', 'print JSON');
  withExamples(setup, 'tally setup', 'tally setup --apply', 'tally setup --region eu-west-1 --apply').action(
    async (options: SetupOptions) => {
      const { region, apply } = options;
      const request = { region, installation: cli.settings().TALLY_INSTALLATION };
      const plan = await cli.withSetup((made, signal) => (apply === true ? made.apply(request, signal) : made.plan(request, signal)));
      // a shell evaluates what --apply prints
      cli.print(options, plan, () => (apply === true ? exportsText(plan) : planText(plan)));
      cli.hint(options, nextText(options, plan));
    },
  );
}

function regionIn(text: string): string {
  if (/^[a-z]{2,5}(?:-[a-z]+)+-\d+$/.test(text)) return text;
  throw new InvalidArgumentError('It must be an AWS region, such as eu-west-1.');
}

function nextText({ region }: SetupOptions, { parts, made = [] }: SetupPlan): string {
  if (made.length > 0) return `Created or corrected:\n${made.map((name) => `  ${name}`).join('\n')}\nStart Tally with these settings.`;
  if (parts.every(({ state }) => state === 'as-planned')) return 'Everything already exists as planned. Start Tally with these settings.';
  return `To apply it: ${shellWords('tally', 'setup', '--apply', ...(region === undefined ? [] : ['--region', region]))}`;
}

/** For a shell. */
function exportsText({ settings = {} }: SetupPlan): string {
  return linesText(
    Object.entries(settings)
      .map(([name, value]) => `export ${name}=${shellWord(value)}`)
      .join('\n'),
  );
}

function planText(plan: SetupPlan): string {
  const parts = plan.parts.map((part) => linesText(partText(part)));
  return [...parts, ...(plan.settings === undefined ? [] : [exportsText(plan)])].join('\n\n');
}

function partText(part: PlannedPart): string {
  const { kind, attributes, differences } = part;
  const name = nameOf(part);
  switch (part.state) {
    case 'absent':
      return changesText([{ action: 'create', part: kind, name: name.slice(kind.length + 1), after: attributes }]);
    case 'as-planned':
      return `= ${name}\n    It exists as planned.`;
    case 'different':
      return [
        `~ ${name}`,
        ...differences.flatMap(({ attribute, wanted, found = 'not set' }) => [`    ${attribute} is ${found}`, `    planned  ${wanted}`]),
      ].join('\n');
  }
}
