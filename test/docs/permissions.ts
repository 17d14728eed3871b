/** What the pages and config/aws/daemon-policy.json say of permissions, from the table that `tally iam-policy` prints. */
import { bucketSources } from '../../src/records/bucket.ts';
import { iamPolicy, permissions, type Resource } from '../../src/connect/permissions.rules.ts';
import { textOf } from './pages.ts';
import { withTable } from './tables.ts';

/** docs/reference/permissions.md with its table. */
export function permissionsPage(): string {
  const rows = permissions.map(({ sid, roles, sources, actions, resource, why }) => {
    return [
      `\`${sid}\``,
      roles.length > 1 ? 'both' : (roles[0] ?? ''),
      sources?.map((source) => `\`${source}\``).join(', ') ?? 'every',
      actionsText(actions),
      RESOURCES[resource],
      why,
    ];
  });
  return withTable(
    textOf('docs/reference/permissions.md'),
    'permissions',
    tableText(['statement', 'who', 'sources', 'permissions', 'of', 'what it is for'], rows),
  );
}

/** config/aws/daemon-policy.json: the daemon with every source, with example names. */
export function daemonPolicy(): string {
  const isShort = (line: string): boolean => line.length <= WIDTH_MAX;
  const lists = /^( *"?\w*"?:? ?)\[\n([^[\]{}]*?)\n *\](,?)$/gm;
  const text = JSON.stringify(examplePolicy(), undefined, 2).replaceAll(lists, (whole, start: string, values: string, end: string) => {
    const line = `${start}[${values
      .split('\n')
      .map((value) => value.trim())
      .join(' ')}]${end}`;
    return isShort(line) ? line : whole;
  });
  return `${text}\n`;
}

/** As the formatter leaves it. */
const WIDTH_MAX = 140;

interface Statement {
  readonly Sid: string;
  readonly Resource: string | readonly string[];
  readonly Condition?: object;
}

interface Policy {
  readonly Version: string;
  readonly Statement: readonly Statement[];
}

const PLACE = { partition: 'aws', region: 'eu-central-1', account: '123456789012' };
const queue = (name: string): string => `arn:aws:sqs:${PLACE.region}:${PLACE.account}:${name}`;
const TOPICS = `arn:aws:sns:*:${PLACE.account}:`;

function examplePolicy(): Policy {
  const policy = iamPolicy('daemon', bucketSources, {
    ...PLACE,
    bucketQueues: [queue('tally-bucket-events')],
    letterQueues: [queue('tally-dead-letters')],
    bucket: 'photos',
    installation: '*',
    keyArn: `arn:aws:kms:${PLACE.region}:${PLACE.account}:key/*`,
    trailArn: `arn:aws:cloudtrail:*:${PLACE.account}:trail/*`,
  }) as Policy;
  return { ...policy, Statement: policy.Statement.map(asExample) };
}

/** The key is known by its alias; the topics of others may have any name. */
function asExample(statement: Statement): Statement {
  const { Resource, Condition } = statement;
  if (typeof Resource !== 'string') return statement;
  if (Resource.startsWith(TOPICS)) return { ...statement, Resource: `${TOPICS}*` };
  if (!Resource.includes(':kms:')) return statement;
  return { ...statement, Condition: { ...Condition, 'ForAnyValue:StringEquals': { 'kms:ResourceAliases': 'alias/tally' } } };
}

function actionsText(actions: readonly string[]): string {
  return actions.map((action) => `\`${action}\``).join(', ');
}

function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return lines.toSpliced(1, 0, `|${head.map(() => '---').join('|')}|`).join('\n');
}

const RESOURCES: Readonly<Record<Resource, string>> = {
  queues: 'the bucket queue and the dead-letter queues',
  'bucket-queues': 'the bucket queue',
  'new-queues': 'the queues that Tally creates',
  'letter-queues': 'the dead-letter queues',
  topics: "the buckets' topics",
  'own-topics': 'the topics that Tally creates',
  'named-topics': 'the topics of `--topic`',
  bucket: 'each bucket',
  objects: "each bucket's objects",
  rules: 'the rules that Tally creates',
  'all-rules': 'all rules',
  'all-trails': 'all trails',
  trail: 'the trail in `TALLY_TRAIL_ARN`',
  key: "the queues' key",
};
