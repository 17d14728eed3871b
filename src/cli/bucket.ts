import { type Command, Option } from 'commander';
import { bucketSources, enrichModes, type BucketSource, type EnrichMode } from '../domain/bucket.ts';
import type { BucketList } from '../pipeline/control.ts';
import { printable } from '../domain/printable.ts';
import { CALLER, type Cli, type JsonOption } from './cli.ts';
import { tableText, timeText } from './output.ts';

interface AddOptions extends JsonOption {
  readonly source?: BucketSource;
  readonly topic?: string;
  readonly enrich?: EnrichMode;
}

/** `tally bucket add|list|remove`. */
export function addBucketCommands(program: Command, cli: Cli): void {
  const bucket = program.command('bucket').description('connect buckets, list them, disconnect them');
  addAdd(bucket, cli);
  addList(bucket, cli);
  addRemove(bucket, cli);
}

function addAdd(bucket: Command, cli: Cli): void {
  bucket
    .command('add')
    .description('connect a bucket, so that its events are indexed; of a connected one, change what is given')
    .argument('<name>', 'the bucket')
    .addOption(new Option('--source <source>', 'how its events reach the bucket queue').choices(bucketSources))
    .option('--topic <arn>', 'the SNS topic that its events come through')
    .addOption(new Option('--enrich <mode>', 'what is read of each object beyond its events').choices(enrichModes))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally bucket add photos --source notification --topic arn:aws:sns:eu-west-1:123456789012:photos')
    .action((name: string, options: AddOptions) =>
      cli.withControl(async (control) => {
        const { source, topic, enrich } = options;
        const request = {
          bucket: name,
          ...(source !== undefined && { source }),
          ...(topic !== undefined && { topicArn: topic }),
          ...(enrich !== undefined && { enrich }),
        };
        const record = await control.buckets.add(request, CALLER);
        cli.print(options, record, () =>
          printable(
            `${record.bucket} is connected (${record.region}, source ${record.source}, versioning ${record.versioning.status}, enrich ${record.enrich}).`,
          ),
        );
        cli.hint(`Its events are indexed from now on; for what it holds already: tally reindex ${printable(name)}`);
      }),
    );
}

function addList(bucket: Command, cli: Cli): void {
  bucket
    .command('list')
    .description('list connected buckets, and buckets whose events arrive although they are not connected')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally bucket list')
    .action((options: JsonOption) =>
      cli.withControl(async (control) => {
        const list = await control.buckets.list();
        cli.print(options, list, () => listText(list));
      }),
    );
}

function addRemove(bucket: Command, cli: Cli): void {
  bucket
    .command('remove')
    .description('disconnect a bucket and delete its documents from the index; the bucket itself is never touched')
    .argument('<name>', 'the bucket')
    .option('--yes', 'really do it')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally bucket remove photos --yes')
    .action(async (name: string, options: JsonOption & { readonly yes?: boolean }, command: Command) => {
      if (options.yes !== true) {
        command.error(`error: this deletes every document of ${printable(name)} from the index; repeat it with --yes`);
      }
      await cli.withControl(async (control) => {
        await control.buckets.remove(name);
        cli.print(options, { removed: name }, () => `${printable(name)} is disconnected and its documents are deleted.`);
      });
    });
}

function listText({ connected, unconnected }: BucketList): string {
  const table = tableText(
    ['BUCKET', 'REGION', 'SOURCE', 'VERSIONING', 'ENRICH', 'LAST EVENT'],
    connected.map(({ bucket, region, source, versioning, enrich, lastEventAtMs }) => [
      ...[bucket, region, source, versioning.status, enrich],
      timeText(lastEventAtMs),
    ]),
  );
  const known = connected.length === 0 ? 'No bucket is connected: tally bucket add NAME' : table;
  if (unconnected.length === 0) return known;
  const others = tableText(
    ['NOT CONNECTED', 'EVENTS', 'FIRST', 'LAST'],
    unconnected.map(({ bucket, count, firstSeenMs, lastSeenMs }) => [bucket, count, timeText(firstSeenMs), timeText(lastSeenMs)]),
  );
  return `${known}\n\n${others}`;
}
