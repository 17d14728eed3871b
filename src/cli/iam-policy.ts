import { type Command, InvalidArgumentError, Option } from 'commander';
import { regionInQueueUrl } from '../aws/addresses.rules.ts';
import { bucketSources, type BucketSource } from '../records/bucket.ts';
import { iamPolicy, iamRoles, type IamNames, type IamRole } from '../connect/permissions.rules.ts';
import { withExamples } from './arguments.ts';
import { parseArn, partitionOf } from '../connect/names.rules.ts';
import { BUCKET_QUEUE, lettersName, queueArns } from '../connect/shared.rules.ts';
import type { Cli } from './cli.ts';
import { jsonText } from './output.ts';
import type { Settings } from '../settings/settings.ts';

interface PolicyOptions {
  readonly for: IamRole;
  readonly source?: BucketSource;
  readonly bucket?: string;
  readonly key?: string;
  readonly topic?: readonly string[];
}

/** `tally iam-policy`: the least permissions, from the table of all calls. */
export function addIamPolicyCommand(program: Command, cli: Cli): void {
  const policy = program
    .command('iam-policy')
    .summary('print the permissions that Tally needs')
    .description(
      'Prints the least-privilege IAM policy for the daemon, for the person who plans and applies connections, or for the person who runs `tally setup`. Names that are not in the settings become `*`.',
    )
    .addOption(
      new Option(
        '--for <role>',
        'daemon: the serving process; connecting: the process that connects buckets; setup: the person who runs `tally setup`',
      )
        .choices(iamRoles)
        .default('daemon'),
    )
    .addOption(new Option('--source <source>', 'only what this source needs').choices(bucketSources))
    .option('--bucket <name>', 'only for this bucket')
    .option('--key <arn>', "the queues' KMS key, if it is not SQS's own")
    .addOption(
      new Option(
        '--topic <arn...>',
        "only these topics of the sources topic and routed; required for other accounts' topics, and for your own topic with routed",
      ).argParser(topicsIn),
    );
  withExamples(policy, 'tally iam-policy', 'tally iam-policy --for connecting --source notification --bucket photos').action(
    (options: PolicyOptions) => {
      const settings = cli.settings();
      const sources = options.source === undefined ? bucketSources : [options.source];
      const names = {
        ...namesOf(settings),
        bucket: options.bucket ?? '*',
        keyArn: options.key,
        topicArns: options.topic,
      };
      cli.print({}, undefined, () => jsonText(iamPolicy(options.for, sources, names)));
    },
  );
}

/** Collects the values of an option. */
function topicsIn(text: string, before: readonly string[] = []): readonly string[] {
  if (parseArn(text)?.service !== 'sns') throw new InvalidArgumentError('It must be the ARN of an SNS topic.');
  return [...before, text];
}

/**
 * A queue's URL has its region, account and name: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME. Emulators put more before the
 * account: http://127.0.0.1:4566/queue/REGION/ACCOUNT/NAME.
 */
const QUEUE_URL = /^https?:\/\/[^/]+\/(?:.*\/)?(\d{12})\/([^/]+)$/;

function queueArnOf(url: string): string | undefined {
  const [, account, name] = QUEUE_URL.exec(url) ?? [];
  if (account === undefined || name === undefined) return undefined;
  const region = regionInQueueUrl(url) ?? '*';
  return `arn:${partitionOf(region)}:sqs:${region}:${account}:${name}`;
}

function arnsOf(urls: readonly (string | undefined)[]): readonly string[] {
  return urls.flatMap((url) => (url === undefined ? [] : (queueArnOf(url) ?? [])));
}

function namesOf(settings: Settings): Omit<IamNames, 'bucket'> {
  const bucketQueues = arnsOf(settings.TALLY_QUEUE_URL);
  const named = arnsOf([settings.TALLY_DEAD_LETTER_QUEUE_URL]);
  const letterQueues = [...new Set(named.length > 0 ? named : bucketQueues.map((arn) => arn.replace(/[^:]+$/, lettersName)))];
  const known = [...bucketQueues, ...letterQueues];
  const { partition, region, account } = parseArn(known[0] ?? '') ?? { partition: 'aws', region: '*', account: '*' };
  const place = { partition, region, account };
  const any = [`arn:${partition}:sqs:${region}:${account}:*`];
  return {
    ...place,
    bucketQueues: bucketQueues.length === 0 ? any : bucketQueues,
    letterQueues: known.length === 0 ? any : letterQueues,
    newQueues: bucketQueues.length > 0 ? known : Object.values(queueArns(BUCKET_QUEUE, place)),
    installation: settings.TALLY_INSTALLATION ?? '*',
    trailArn: settings.TALLY_TRAIL_ARN,
  };
}
