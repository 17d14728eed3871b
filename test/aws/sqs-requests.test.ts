/** What leaves for SQS and what is made of its answers, at the other end of the wire: a service that answers what a test says. */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AwsClients } from '../../src/aws/clients.ts';
import { openClients } from '../support/servers/aws-clients.ts';
import { startScripted, type ScriptedAnswer, type ScriptedRequest } from '../support/servers/scripted.ts';
import { signatureMistake } from '../support/sigv4.ts';

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalr/EXAMPLE+KEY' };
const signer = { ...credentials, region: 'eu-west-1', service: 'sqs', sessionToken: '' };
let answer: () => ScriptedAnswer;
let seen: ScriptedRequest[];
let endpoint: string;
let clients: AwsClients;

beforeEach(async () => {
  answer = () => ({ body: {} });
  ({ asked: seen, url: endpoint } = await startScripted(() => {
    const { headers, ...answered } = answer();
    return { ...answered, headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': 'request-1', ...headers } };
  }));
  clients = clientsWith(credentials);
});

const clientsWith = (given: typeof credentials & { readonly sessionToken?: string }): AwsClients =>
  openClients({ region: signer.region, endpoints: { sqs: endpoint }, credentials: given });

const url = (): string => `${endpoint}/000000000000/events`;
const handles = [
  { Id: '0', ReceiptHandle: 'a+b/c=' },
  { Id: '1', ReceiptHandle: 'ünï "quoted" \\ \n😀' },
];

/** The SDK's client as it comes: what ours must agree with. */
function plainClient(): SQSClient {
  return new SQSClient({ region: signer.region, endpoint, credentials, useQueueUrlAsEndpoint: false, md5: false, maxAttempts: 1 });
}

const requests = [
  {
    name: 'ReceiveMessage',
    command: () => new ReceiveMessageCommand({ QueueUrl: url(), MaxNumberOfMessages: 10, MessageAttributeNames: ['All'] }),
  },
  { name: 'DeleteMessageBatch', command: () => new DeleteMessageBatchCommand({ QueueUrl: url(), Entries: handles }) },
  {
    name: 'ChangeMessageVisibilityBatch',
    command: () =>
      new ChangeMessageVisibilityBatchCommand({ QueueUrl: url(), Entries: handles.map((each) => ({ ...each, VisibilityTimeout: 0 })) }),
  },
  { name: 'GetQueueAttributes', command: () => new GetQueueAttributesCommand({ QueueUrl: url(), AttributeNames: ['All'] }) },
];

/** A client that has sent its first request, which is the SDK's: those that follow are as most are. */
async function warmed(client: SQSClient): Promise<SQSClient> {
  const given = answer;
  answer = () => ({ body: { Attributes: {} } });
  await client.send(new GetQueueAttributesCommand({ QueueUrl: url(), AttributeNames: ['All'] }));
  answer = given;
  seen.splice(0);
  return client;
}

/** The one overload that all of them fit. */
type Send = (command: ReturnType<(typeof requests)[number]['command']>, options?: { readonly abortSignal: AbortSignal }) => Promise<object>;
const sendBy = (client: SQSClient): Send => client.send.bind(client) as Send;

describe('requests to SQS', () => {
  it.each(requests)('are signed so that AWS takes them: $name', async ({ command }) => {
    const sessionToken = 'session/of+the==role';
    for (const session of [{}, { sessionToken }]) {
      const own = clientsWith({ ...credentials, ...session });
      for (const client of [own.sqsFor(url()), own.sqsReceivingFor(url())])
        for (let round = 0; round < 2; round += 1) await sendBy(client)(command());
      const mistakes = seen.splice(0).map((request) => signatureMistake(request, { ...signer, ...session }));
      expect(mistakes).toEqual([undefined, undefined, undefined, undefined]);
    }
  });

  it.each(requests)('say what those of the SDK’s own client say: $name', async ({ command }) => {
    const own = await warmed(clients.sqsFor(url()));
    const plain = plainClient();
    await sendBy(plain)(command());
    await sendBy(own)(command());
    plain.destroy();
    const [theirs, ours] = seen;
    expect(JSON.parse(ours!.body)).toEqual(JSON.parse(theirs!.body));
    const telling = ({ method, path, headers }: ScriptedRequest) => [
      method,
      path,
      headers['x-amz-target'],
      headers['content-type'],
      headers['x-amzn-query-mode'],
      headers.host,
    ];
    expect(telling(ours!)).toEqual(telling(theirs!));
  });

  it('are aborted by their own signal, also after others were sent with it, and no request of another poller is', async () => {
    const send = sendBy(clients.sqsReceivingFor(url()));
    const [stopped, other] = [new AbortController(), new AbortController()];
    const [receive] = requests;
    for (const { signal } of [stopped, other]) await send(receive!.command(), { abortSignal: signal });
    answer = () => {
      stopped.abort();
      return { body: {} };
    };
    const ends = await Promise.allSettled([stopped, other].map(({ signal }) => send(receive!.command(), { abortSignal: signal })));
    expect(ends).toMatchObject([{ status: 'rejected', reason: { name: 'AbortError' } }, { status: 'fulfilled' }]);
    await expect(send(receive!.command(), { abortSignal: stopped.signal })).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('end when no answer comes, or one that stalls: a receive after its wait', async () => {
    const limits = (timeoutMs: number) => ({
      connectionTimeout: 3_000,
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: timeoutMs,
    });
    for (const [client, timeoutMs] of [
      [clients.sqsFor(url()), 10_000],
      [clients.sqsReceivingFor(url()), 11_000],
    ] as const) {
      await sendBy(client)(requests[0]!.command());
      const handler = client.config.requestHandler as unknown as { httpHandlerConfigs(): object };
      expect(handler.httpHandlerConfigs()).toMatchObject(limits(timeoutMs));
    }
  });

  it('are signed by the service’s clock once it is known that this machine’s is off', async () => {
    answer = () => ({ headers: { date: new Date(Date.now() + 3_600_000).toUTCString() }, body: {} });
    const send = sendBy(clients.sqsFor(url()));
    const signedAtMs = (): number => {
      const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(
        String(seen.at(-1)!.headers['x-amz-date']),
      )!;
      return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
    };
    await send(requests[0]!.command());
    expect(Math.abs(signedAtMs() - Date.now())).toBeLessThan(1_800_000);
    await send(requests[0]!.command());
    expect(signedAtMs() - Date.now()).toBeGreaterThan(1_800_000);
  });
});

describe('answers of SQS', () => {
  const message = {
    MessageId: 'm',
    ReceiptHandle: 'r',
    MD5OfBody: 'x',
    Body: 'ünï "quoted" 😀 \u0000',
    Attributes: { SentTimestamp: '1', ApproximateReceiveCount: '2' },
    MessageAttributes: { note: { DataType: 'String', StringValue: 'ünï' }, bytes: { DataType: 'Binary', BinaryValue: 'AP8=' } },
  };

  it.each([
    { what: 'messages with attributes', at: 0, body: { Messages: [message, { ...message, MessageAttributes: undefined }] } },
    { what: 'no messages', at: 0, body: {} },
    { what: 'messages that are null', at: 0, body: { Messages: null } },
    { what: 'an empty body', at: 0, body: '' },
    {
      what: 'deletes, some failed',
      at: 1,
      body: { Successful: [{ Id: '0' }], Failed: [{ Id: '1', Code: 'ReceiptHandleIsInvalid', SenderFault: true }] },
    },
    { what: 'changes of visibility', at: 2, body: { Successful: [{ Id: '0' }, { Id: '1' }], Failed: [] } },
    { what: 'attributes', at: 3, body: { Attributes: { VisibilityTimeout: '30' } } },
  ])('are read as the SDK’s own client reads them: $what', async ({ at, body }) => {
    answer = () => ({ body });
    const plain = plainClient();
    const facts = (output: object): object => {
      const { $metadata: _, Messages, ...others } = output as { $metadata: object; Messages?: object[] | null };
      // nothing and null are the same to a reader
      return { ...others, ...(Messages && { Messages }) };
    };
    const own = await warmed(clients.sqsFor(url()));
    const theirs = await sendBy(plain)(requests[at]!.command());
    const ours = await sendBy(own)(requests[at]!.command());
    plain.destroy();
    expect(facts(ours)).toEqual(facts(theirs));
  });

  it.each(requests)('that are errors keep their names: $name', async ({ command }) => {
    answer = () => ({
      status: 400,
      headers: { 'x-amzn-query-error': 'AWS.SimpleQueueService.NonExistentQueue;Sender' },
      body: { __type: 'com.amazonaws.sqs#QueueDoesNotExist', message: 'no such queue' },
    });
    const thrown = (client: SQSClient) => sendBy(client)(command()).catch((error: unknown) => error as Error);
    const plain = plainClient();
    const own = await warmed(clients.sqsReceivingFor(url()));
    const [theirs, ours] = [await thrown(plain), await thrown(own)];
    plain.destroy();
    expect(ours).toMatchObject({ name: (theirs as Error).name, message: (theirs as Error).message });
    expect((ours as Error).name).toContain('QueueDoesNotExist');
  });

  it('of a failing service are asked for again where nothing is lost by it, and a receive once', async () => {
    const [deleting, receiving] = [await warmed(clients.sqsFor(url())), await warmed(clients.sqsReceivingFor(url()))];
    answer = () => (seen.length % 3 === 0 ? { body: {} } : { status: 503, body: {} });
    await sendBy(deleting)(requests[1]!.command());
    expect(seen.splice(0).map((request) => signatureMistake(request, signer))).toEqual([undefined, undefined, undefined]);
    await expect(sendBy(receiving)(requests[0]!.command())).rejects.toThrow();
    expect(seen).toHaveLength(2);
  });

  it('of a service that fails again after an outage are asked for as often as before, once others have succeeded', async () => {
    const sqs = clients.sqsFor(url());
    const remove = () => sqs.send(new DeleteMessageBatchCommand({ QueueUrl: url(), Entries: handles }));
    await remove();
    const failing = async (): Promise<number> => {
      answer = () => ({ status: 500, body: {} });
      const before = seen.length;
      await expect(remove()).rejects.toThrow();
      return seen.length - before;
    };
    const atFirst = await failing();
    expect(atFirst).toBeGreaterThan(2);
    // the SDK gives 500 tokens, of which each retry takes some
    await Promise.allSettled(Array.from({ length: 60 }, remove));
    expect(await failing()).toBe(2);
    answer = () => ({ body: {} });
    for (let count = 0; count < 50; count += 1) await remove();
    expect(await failing()).toBe(atFirst);
  });

  it('that break off are asked for again where nothing is lost by it, and left to the poller where it receives', async () => {
    const [deleting, receiving] = [await warmed(clients.sqsFor(url())), await warmed(clients.sqsReceivingFor(url()))];
    answer = () => (seen.length === 2 ? { body: {} } : { body: {}, isCut: true });
    await sendBy(deleting)(requests[1]!.command());
    expect(seen.splice(0)).toHaveLength(2);
    answer = () => ({ body: {}, isCut: true });
    await expect(sendBy(receiving)(requests[0]!.command())).rejects.toThrow();
    expect(seen).toHaveLength(1);
  });
});
