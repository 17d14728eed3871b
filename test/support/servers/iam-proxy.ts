/**
 * IAM before an emulator of AWS that has none: a proxy that reads of each request what it asks permission for, and refuses what
 * the policies do not allow, as AWS refuses it. Who sends a request is known by its access key.
 *
 * https://docs.aws.amazon.com/service-authorization/latest/reference/ names actions and resources. SNS judges what concerns a
 * subscription by the ARN of its topic, as its refusals say.
 */
import { startFaultProxy, type PassingRequest } from './fault-proxy.ts';

export interface Statement {
  readonly Sid: string;
  readonly Action: readonly string[];
  readonly Resource: string | readonly string[];
}

/** The statements of the process, and of a person who connects. */
type Policies = Readonly<Record<'process' | 'person', readonly Statement[]>>;

interface Ask {
  readonly action: string;
  readonly resource: string;
}

interface Requested {
  readonly service: string;
  readonly asks: readonly Ask[];
}

/** Starts it before the emulator at `target`. */
export async function startIamProxy(target: string, policies: Policies) {
  const proxy = await startFaultProxy(target);
  const refused = new Set<string>();
  const used = { process: new Set<string>(), person: new Set<string>() };

  const principalOf = (request: PassingRequest) => (keyOf(request) === 'test' ? 'process' : 'person');

  /** Judges a request, and notes what allowed it. */
  function isRefused(request: PassingRequest, { asks }: Requested): boolean {
    const principal = principalOf(request);
    const judged = asks.map((ask) => ({ ask, allowing: allowing(policies[principal], ask) }));
    for (const { ask, allowing: names } of judged) {
      if (names.length === 0) refused.add(`${principal}: ${ask.action} ${ask.resource}`);
      for (const name of names) used[principal].add(name);
    }
    return judged.some(({ allowing: names }) => names.length === 0);
  }

  for (const [service, answer] of Object.entries(refusals))
    proxy.interfere({ kind: 'answer', status: 403, ...answer }, (request) => {
      const requested = requestedBy(request);
      return requested.service === service && isRefused(request, requested);
    });

  return {
    url: proxy.url,
    /** What no statement allowed, each once. */
    refused,
    /** What a principal may do and has not done: each action of each statement, for each of its resources. */
    unused: (principal: keyof Policies) => policies[principal].flatMap(namesOf).filter((name) => !used[principal].has(name)),
    close: () => proxy.close(),
  };
}

const XML = { 'content-type': 'text/xml', 'x-amzn-requestid': 'refused', 'x-amz-request-id': 'refused' };
const JSON_1 = { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-requestid': 'refused' };
const queryError = (code: string): string =>
  `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>not authorized</Message></Error><RequestId>r</RequestId></ErrorResponse>`;
const jsonError = JSON.stringify({ __type: 'AccessDeniedException', message: 'not authorized' });

/** How each service refuses. */
const refusals: Readonly<Record<string, { readonly body: string; readonly headers: Readonly<Record<string, string>> }>> = {
  s3: { body: '<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>', headers: XML },
  sns: { body: queryError('AuthorizationError'), headers: XML },
  sqs: { body: jsonError, headers: JSON_1 },
  events: { body: jsonError, headers: JSON_1 },
  cloudtrail: { body: jsonError, headers: JSON_1 },
};

function allowing(statements: readonly Statement[], { action, resource }: Ask): string[] {
  return statements.flatMap((statement) =>
    statement.Action.includes(action)
      ? resourcesOf(statement)
          .filter((pattern) => matches(pattern, resource))
          .map((pattern) => nameOf(statement, action, pattern))
      : [],
  );
}

function namesOf(statement: Statement): string[] {
  return statement.Action.flatMap((action) => resourcesOf(statement).map((pattern) => nameOf(statement, action, pattern)));
}

function nameOf({ Sid }: Statement, action: string, pattern: string): string {
  return `${Sid}: ${action} ${pattern}`;
}

function resourcesOf({ Resource }: Statement): readonly string[] {
  return typeof Resource === 'string' ? [Resource] : Resource;
}

/** A policy's `*` is any text. */
function matches(pattern: string, resource: string): boolean {
  const [start = '', ...parts] = pattern.split('*');
  if (!resource.startsWith(start)) return false;
  let rest = resource.slice(start.length);
  const end = parts.pop();
  if (end === undefined) return rest === '';
  for (const part of parts) {
    const at = rest.indexOf(part);
    if (at === -1) return false;
    rest = rest.slice(at + part.length);
  }
  return rest.endsWith(end);
}

function scopeOf({ headers }: PassingRequest): readonly string[] {
  return /Credential=([^/]+)\/\d+\/([^/]+)\/([^/]+)\//.exec(headers.authorization ?? '')?.slice(1) ?? [];
}

function keyOf(request: PassingRequest): string | undefined {
  return scopeOf(request)[0];
}

function requestedBy(request: PassingRequest): Requested {
  const [, region = '', service = ''] = scopeOf(request);
  if (service === 's3') return { service, asks: [askOfS3(request)] };
  const target = request.headers['x-amz-target'];
  const fields: Record<string, unknown> =
    typeof target === 'string'
      ? (JSON.parse(request.body) as Record<string, unknown>)
      : Object.fromEntries(new URLSearchParams(request.body));
  const operation = typeof target === 'string' ? target.slice(target.lastIndexOf('.') + 1) : text(fields['Action']);
  // what is sent in batches is permitted as one by one
  const action = `${service}:${operation.replace(/Batch$/, '')}`;
  const resource = resourceReaders[service]?.(fields, region) ?? '*';
  const asks = [{ action, resource }];
  // SQS has TagQueue for its own
  const hasTags = service !== 'sqs' && Object.keys(fields).some((name) => /^Tags\b/.test(name));
  return { service, asks: hasTags ? [...asks, { action: `${service}:TagResource`, resource }] : asks };
}

/** The ARN of what the fields of a request are about. */
const resourceReaders: Readonly<Record<string, (fields: Readonly<Record<string, unknown>>, region: string) => string>> = {
  sqs: ({ QueueUrl, QueueName, QueueOwnerAWSAccountId }, region) => {
    const [owner, name] =
      QueueUrl === undefined ? [text(QueueOwnerAWSAccountId ?? ACCOUNT), text(QueueName)] : text(QueueUrl).split('/').slice(-2);
    return `arn:aws:sqs:${region}:${owner ?? ''}:${name ?? ''}`;
  },
  sns: ({ TopicArn, ResourceArn, SubscriptionArn, Name }, region) => {
    if (Name !== undefined) return `arn:aws:sns:${region}:${ACCOUNT}:${text(Name)}`;
    const arn = text(TopicArn ?? ResourceArn ?? SubscriptionArn);
    return arn.split(':').slice(0, 6).join(':');
  },
  events: ({ Name, Rule, ResourceARN }, region) => {
    if (ResourceARN !== undefined) return text(ResourceARN);
    const rule = Name ?? Rule;
    return rule === undefined ? '*' : `arn:aws:events:${region}:${ACCOUNT}:rule/${text(rule)}`;
  },
};

const ACCOUNT = '000000000000';

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Subresources, by the parameter that names each, and what reading one needs. */
const subresources: Readonly<Record<string, string>> = {
  notification: 's3:GetBucketNotification',
  versioning: 's3:GetBucketVersioning',
  lifecycle: 's3:GetLifecycleConfiguration',
  location: 's3:GetBucketLocation',
  versions: 's3:ListBucketVersions',
  uploads: 's3:ListBucketMultipartUploads',
};

function askOfS3({ method, path }: PassingRequest): Ask {
  const { pathname, searchParams } = new URL(path, 'http://s3');
  const [, bucket = '', ...rest] = pathname.split('/');
  const key = rest.join('/');
  const isWrite = method !== 'GET' && method !== 'HEAD';
  if (key !== '') {
    const version = searchParams.has('versionId') ? 'Version' : '';
    const what = searchParams.has('tagging') ? `Object${version}Tagging` : `Object${version}`;
    return { action: `s3:${isWrite ? method : 'Get'}${what}`, resource: `arn:aws:s3:::${bucket}/${decodeURIComponent(key)}` };
  }
  if (isWrite && searchParams.size === 0) return { action: 's3:CreateBucket', resource: `arn:aws:s3:::${bucket}` };
  const read = Object.entries(subresources).find(([name]) => searchParams.has(name))?.[1] ?? 's3:ListBucket';
  return { action: isWrite ? read.replace(':Get', ':Put') : read, resource: `arn:aws:s3:::${bucket}` };
}
