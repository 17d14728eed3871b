import { type Command, InvalidArgumentError, Option } from 'commander';
import { bucketSources, type BucketSource } from '../domain/bucket.ts';
import { iamPolicy, iamRoles, type IamNames, type IamRole } from '../domain/provisioning/iam.ts';
import { withExamples } from './arguments.ts';
import { parseArn } from '../domain/provisioning/names.ts';
import type { Cli } from './cli.ts';
import { jsonText } from './output.ts';

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
      'Prints an IAM policy with the least that the daemon needs, or the person who plans and applies connections. Names that the settings do not contain are `*`.',
    )
    .addOption(
      new Option('--for <role>', 'daemon: the process that serves; connecting: who plans, applies and removes')
        .choices(iamRoles)
        .default('daemon'),
    )
    .addOption(new Option('--source <source>', 'only what this source needs').choices(bucketSources))
    .option('--bucket <name>', 'only for this bucket')
    .option('--key <arn>', 'the KMS key of the queues, if it is not that of SQS')
    .addOption(
      new Option('--topic <arn...>', 'only these topics of the source topic; needed for those of other accounts').argParser(topicArn),
    );
  withExamples(policy, 'tally iam-policy', 'tally iam-policy --for connecting --source notification --bucket photos').action(
    (options: PolicyOptions) => {
      const settings = cli.settings();
      const urls = [...settings.TALLY_QUEUE_URL, settings.TALLY_WORK_QUEUE_URL, settings.TALLY_DEAD_LETTER_QUEUE_URL];
      const names = namesOf(
        urls.flatMap((url) => url ?? []),
        settings.TALLY_INSTALLATION,
      );
      const sources = options.source === undefined ? bucketSources : [options.source];
      cli.print({}, undefined, () =>
        jsonText(
          iamPolicy(options.for, sources, {
            ...names,
            bucket: options.bucket ?? '*',
            connectRoleArn: settings.TALLY_CONNECT_ROLE_ARN,
            keyArn: options.key,
            topicArns: options.topic,
          }),
        ),
      );
    },
  );
}

/** Collects the values of the option. */
function topicArn(text: string, before: readonly string[] | undefined): readonly string[] {
  if (parseArn(text)?.service !== 'sns') throw new InvalidArgumentError('It must be the ARN of an SNS topic.');
  return [...(before ?? []), text];
}

/** A queue's URL has its region, account and name: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME. */
const QUEUE_URL = /^https?:\/\/(?:[a-z0-9-]+\.)*?sqs(?:-fips)?\.([a-z0-9-]+)\.[^/]*\/(\d{12})\/([^/]+)$/;

function namesOf(urls: readonly string[], installation = '*'): Omit<IamNames, 'bucket'> {
  const found = urls.flatMap((url) => {
    const [, region, account, name] = QUEUE_URL.exec(url) ?? [];
    return region === undefined || account === undefined || name === undefined ? [] : [{ region, account, name }];
  });
  const [first] = found;
  const region = first?.region ?? '*';
  return {
    partition: partitionOf(region),
    region,
    account: first?.account ?? '*',
    queues: found.length === 0 ? ['*'] : found.map(({ name }) => name),
    installation,
  };
}

function partitionOf(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn';
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws';
}
