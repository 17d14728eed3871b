import type { Command } from 'commander';
import type { Diagnosis } from '../api/connections.ts';
import { allBuckets } from './all-buckets.ts';
import { printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { exitCodeOf, findingText } from './connections.ts';
import { linesText } from './output.ts';

/** `tally doctor [NAME]`: what keeps events from arriving. */
export function addDoctorCommand(program: Command, cli: Cli): void {
  const doctor = program
    .command('doctor')
    .summary('check the way of the events in AWS')
    .description(
      'Checks everything in AWS that the events of a bucket, or of all connected buckets, pass on their way. It only reads. Each finding has a command or a statement to paste.',
    )
    .argument('[name]', 'the bucket; without it, all connected buckets');
  printing(doctor, 'tally doctor', 'tally doctor photos --json').action(async (name: string | undefined, options: JsonOption) => {
    const items = await cli.withControl(async (control, context) => {
      const names = name === undefined ? (await allBuckets(control, context)).items.map(({ bucket }) => bucket) : [name];
      const found: Diagnosis[] = [];
      for (const bucket of names) found.push(await control.diagnoseBucket({ params: { bucket } }, context));
      return found;
    });
    if (items.length === 0) cli.hint(options, `No bucket is connected. Connect one: ${cli.typed('bucket add NAME --apply')}`);
    else if (options.json !== true) cli.print(options, undefined, () => items.map((item) => diagnosisText(item, cli)).join('\n\n'));
    if (options.json === true) cli.print(options, { items }, () => '');
    cli.endWith(exitCodeOf(items.flatMap(({ findings }) => findings)));
  });
}

function diagnosisText({ bucket, status, findings }: Diagnosis, cli: Cli): string {
  return linesText([`${bucket}: ${status}`, ...findings.map((finding) => findingText(finding, cli))].join('\n'));
}
