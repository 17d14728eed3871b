import type { Command } from 'commander';
import { shellWord } from '../domain/commands.ts';
import { changeText } from '../domain/provisioning/planning/parts.ts';
import { QUEUE_PREFIX } from '../domain/provisioning/planning/queue-pair.ts';
import type { PlannedQueue, QueuePairPlan } from '../pipeline/provision/queue-pair.ts';
import { queuePrefixOption, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { linesText } from './output.ts';

interface CreateOptions extends JsonOption {
  readonly prefix: string;
  readonly apply?: true;
}

/** `tally queue create`. */
export function addQueueCommands(program: Command, cli: Cli): void {
  const queue = program
    .command('queue')
    .summary('make the bucket queue')
    .description('Makes the bucket queue, which the events of all buckets reach.');
  withExamples(queue, 'tally queue create');
  const create = queue
    .command('create')
    .summary('make the bucket queue and its dead-letter queue')
    .description(
      'Shows the bucket queue and its dead-letter queue as they are to be, in the region of AWS_REGION, and how those that exist differ. With --apply it makes what is absent, sets what differs, and prints the settings to export.',
    )
    .addOption(queuePrefixOption())
    .option('--apply', 'make what is absent, and set what differs')
    .option('--json', 'print JSON');
  withExamples(create, 'tally queue create', 'tally queue create --apply').action(async (options: CreateOptions) => {
    const { prefix, apply } = options;
    const plan = await cli.withQueuePair((pair, signal) => (apply === true ? pair.apply(prefix, signal) : pair.plan(prefix, signal)));
    // a shell evaluates what --apply prints
    cli.print(options, plan, () => (apply === true ? exportsText(plan) : planText(plan)));
    cli.hint(options, nextText(options, plan));
  });
}

function nextText({ prefix }: CreateOptions, { settings, made = [] }: QueuePairPlan): string {
  if (made.length > 0) return `Made ${made.join(' and ')}. Start Tally with these settings.`;
  if (settings !== undefined) return 'Both queues exist already, as planned. Start Tally with these settings.';
  return `To make them: tally queue create --apply${prefix === QUEUE_PREFIX ? '' : ` --prefix ${shellWord(prefix)}`}`;
}

/** For a shell. */
function exportsText({ settings = {} }: QueuePairPlan): string {
  return linesText(
    Object.entries(settings)
      .map(([name, value]) => `export ${name}=${shellWord(value)}`)
      .join('\n'),
  );
}

function planText(plan: QueuePairPlan): string {
  const queues = plan.queues.map((queue) => linesText(queueText(queue)));
  return [...queues, ...(plan.settings === undefined ? [] : [exportsText(plan)])].join('\n\n');
}

function queueText({ arn, state, attributes, differences }: PlannedQueue): string {
  switch (state) {
    case 'absent':
      return changeText({ action: 'create', part: 'queue', name: arn }, undefined, attributes);
    case 'as-planned':
      return `= queue ${arn}\n    It exists as planned.`;
    case 'different':
      return [
        `~ queue ${arn}`,
        ...differences.flatMap(({ attribute, wanted, found = 'not set' }) => [`    ${attribute} is ${found}`, `    planned  ${wanted}`]),
      ].join('\n');
  }
}
