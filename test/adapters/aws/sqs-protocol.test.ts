/** The SDK does not promise to keep the methods that are replaced: these tests fail when another SDK is installed. */
import { readFileSync } from 'node:fs';
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { withResolvedRequests } from '../../../src/adapters/aws/resolved-requests.ts';
import { speakPlainJson } from '../../../src/adapters/aws/sqs-protocol.ts';
import packageJson from '../../../package.json' with { type: 'json' };

/** The client, and the two packages whose methods it is made of. */
const pinned = {
  '@aws-sdk/client-sqs': packageJson.dependencies['@aws-sdk/client-sqs'],
  '@aws-sdk/core': packageJson.overrides['@aws-sdk/core'],
  '@smithy/core': packageJson.overrides['@smithy/core'],
};

const readJson = (path: string): unknown => JSON.parse(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8'));

/** Where a package is installed by package-lock.json, and in which version. */
function lockedAt(name: string): readonly (readonly [string, string])[] {
  const { packages } = readJson('package-lock.json') as { readonly packages: Readonly<Record<string, { readonly version: string }>> };
  return Object.entries(packages).flatMap(([path, { version }]) =>
    path.endsWith(`node_modules/${name}`) ? [[path, version] as const] : [],
  );
}

describe('the SDK that is patched', () => {
  it.each(Object.entries(pinned))('is pinned and installed once, in that version: %s', (name, version) => {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(lockedAt(name)).toEqual([[`node_modules/${name}`, version]]);
    expect(readJson(`node_modules/${name}/package.json`)).toMatchObject({ version });
  });

  it('has the methods that are replaced, in the class and not in the client', () => {
    const { protocol } = newClient().config;
    const methods = Object.getOwnPropertyNames(protocol);
    expect(methods).not.toContain('serializeRequest');
    expect(methods).not.toContain('deserializeResponse');
    expect([protocol.constructor.name, protocol.getShapeId()]).toEqual(['AwsJson1_0Protocol', 'aws.protocols#awsJson1_0']);
    // what each is called with
    expect([protocol.serializeRequest.length, protocol.deserializeResponse.length]).toEqual([3, 3]);
  });

  it.each([
    new ReceiveMessageCommand({ QueueUrl: 'https://sqs.eu-west-1.amazonaws.com/0/events', MaxNumberOfMessages: 10 }),
    new DeleteMessageBatchCommand({ QueueUrl: 'https://sqs.eu-west-1.amazonaws.com/0/events', Entries: [{ Id: '0', ReceiptHandle: 'ü' }] }),
  ])('makes requests with the same parts as the replaced method: $constructor.name', async (command) => {
    for (const address of addresses) {
      const [theirs, ours] = [await requestOf(newClient(address), command), await requestOf(patchedClient(address), command)];
      expect(partsOf(ours)).toEqual(partsOf(theirs));
    }
  });

  it('is refused where it is not built as expected', () => {
    for (const protocol of [undefined, {}, { serializeRequest: () => {} }])
      expect(() => speakPlainJson({ config: { protocol } } as unknown as SQSClient)).toThrow('does not have the expected methods');
  });
});

/** The settings that the address of a request is made of. */
const addresses = [
  {},
  { useQueueUrlAsEndpoint: false, useFipsEndpoint: true },
  { useQueueUrlAsEndpoint: false, useDualstackEndpoint: true },
  { useQueueUrlAsEndpoint: false, endpoint: 'https://queues.example:4566' },
];
type Address = ConstructorParameters<typeof SQSClient>[0];

function newClient(address: Address = {}): SQSClient {
  return new SQSClient({ region: 'eu-west-1', credentials: { accessKeyId: 'a', secretAccessKey: 's' }, ...address });
}

function patchedClient(address: Address): SQSClient {
  const client = newClient(address);
  speakPlainJson(client);
  return withResolvedRequests(client);
}

/** The request as the protocol made it, before anything is added; it is never sent. */
async function requestOf(client: SQSClient, command: ReceiveMessageCommand | DeleteMessageBatchCommand): Promise<object> {
  const made = Promise.withResolvers<object>();
  client.middlewareStack.add(
    () => (args) => {
      made.resolve(args.request as object);
      return Promise.reject(new Error('not sent'));
    },
    { step: 'build', priority: 'high' },
  );
  const sending = client.send(command as ReceiveMessageCommand);
  await expect(sending).rejects.toThrow('not sent');
  client.destroy();
  return made.promise;
}

/** All parts that have a value; the SDK's user agent, which it adds later, and the order of the body apart. */
function partsOf(request: object): object {
  const { headers, body, ...parts } = request as { readonly headers: Record<string, string>; readonly body: string | Uint8Array };
  const told = Object.entries(headers).filter(([name]) => name.startsWith('x-amz') || name === 'content-type');
  return {
    ...Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)),
    headers: Object.fromEntries(told),
    body: JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body)),
  };
}
