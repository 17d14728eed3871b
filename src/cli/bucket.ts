import { type Command, Option } from 'commander';
import {
  bucketSources,
  enrichModes,
  type BucketRecord,
  type BucketSource,
  type EnrichMode,
  type UnconnectedRecord,
} from '../domain/bucket.ts';
import { printable } from '../domain/printable.ts';
import { printing, withExamples } from './arguments.ts';
import { CALLER, type Cli, type JsonOption } from './cli.ts';
import { ageText } from './human.ts';
import { fieldsText, tableText } from './output.ts';

interface AddOptions extends JsonOption {
  readonly source?: BucketSource;
  readonly topic?: string;
  readonly enrich?: EnrichMode;
}

interface RemoveOptions extends JsonOption {
  readonly yes?: true;
}

/** `tally bucket add|list|remove`. */
export function addBucketCommands(program: Command, cli: Cli): void {
  const bucket = program
    .command('bucket')
    .summary('connect, list and disconnect buckets')
    .description('Connects, lists and disconnects buckets.');
  withExamples(bucket, 'tally bucket add photos', 'tally bucket list');
  addAdd(bucket, cli);
  addList(bucket, cli);
  addRemove(bucket, cli);
}

function addAdd(bucket: Command, cli: Cli): void {
  const add = bucket
    .command('add')
    .summary('connect a bucket')
    .description(
      'Connects a bucket, so that its events are indexed from now on. Of a bucket that is connected already it changes what is given.',
    )
    .argument('<name>', 'the bucket')
    .addOption(new Option('--source <source>', 'how its events reach the bucket queue').choices(bucketSources))
    .option('--topic <arn>', 'the SNS topic that its events come through')
    .addOption(new Option('--enrich <mode>', 'what is read of each object beyond its events').choices(enrichModes));
  printing(add, 'tally bucket add photos', 'tally bucket add photos --source eventbridge').action(
    async (name: string, options: AddOptions) => {
      const { source, topic, enrich } = options;
      const request = {
        bucket: name,
        ...(source !== undefined && { source }),
        ...(topic !== undefined && { topicArn: topic }),
        ...(enrich !== undefined && { enrich }),
      };
      const record = await cli.withControl((control) => control.buckets.add(request, CALLER));
      cli.print(options, record, () => bucketText(record));
      cli.hint(options, `Its events are indexed from now on. For what it holds already: tally reindex ${printable(name)}`);
    },
  );
}

function addList(bucket: Command, cli: Cli): void {
  const list = bucket
    .command('list')
    .summary('list buckets')
    .description('Lists the connected buckets, and those whose events arrive although they are not connected.');
  printing(list, 'tally bucket list').action(async (options: JsonOption) => {
    const { connected, unconnected } = await cli.withControl((control) => control.buckets.list());
    if (connected.length === 0) cli.hint(options, 'No bucket is connected. Connect one: tally bucket add NAME');
    const tables = () => [connectedText(connected, cli.nowMs()), unconnectedText(unconnected, cli.nowMs())].filter((text) => text !== '');
    if (connected.length + unconnected.length > 0 || options.json === true) {
      cli.print(options, { items: connected, unconnected }, () => tables().join('\n\n'));
    }
  });
}

function addRemove(bucket: Command, cli: Cli): void {
  const remove = bucket
    .command('remove')
    .summary('disconnect a bucket')
    .description('Disconnects a bucket and deletes its documents from the index. The bucket itself and its objects are never touched.')
    .argument('<name>', 'the bucket')
    .option('--yes', 'do not ask');
  printing(remove, 'tally bucket remove photos --yes').action(async (name: string, options: RemoveOptions) => {
    await cli.requireYes(options, `This deletes all documents of ${printable(name)} from the index`);
    await cli.withControl((control) => control.buckets.remove(name));
    cli.print(options, { removed: name }, () => `${printable(name)} is disconnected and its documents are deleted.`);
  });
}

function bucketText({ bucket, region, source, topicArn, versioning, enrich }: BucketRecord): string {
  return fieldsText({ bucket, region, source, topic: topicArn, versioning: versioning.status, enrich });
}

function connectedText(connected: readonly BucketRecord[], nowMs: number): string {
  if (connected.length === 0) return '';
  return tableText(
    ['BUCKET', 'REGION', 'SOURCE', 'VERSIONING', 'ENRICH', 'LAST EVENT'],
    connected.map((record) => [
      record.bucket,
      record.region,
      record.source,
      record.versioning.status,
      record.enrich,
      ageText(record.lastEventAtMs, nowMs),
    ]),
  );
}

function unconnectedText(unconnected: readonly UnconnectedRecord[], nowMs: number): string {
  if (unconnected.length === 0) return '';
  return tableText(
    ['NOT CONNECTED', 'EVENTS', 'FIRST', 'LAST'],
    unconnected.map(({ bucket, count, firstSeenMs, lastSeenMs }) => [
      bucket,
      count,
      ageText(firstSeenMs, nowMs),
      ageText(lastSeenMs, nowMs),
    ]),
  );
}
