/** The SDK does not promise to keep the methods that are replaced: these tests fail when another SDK is installed. */
import { readFileSync } from 'node:fs';
import { SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
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
    const { protocol } = new SQSClient({ region: 'eu-west-1' }).config;
    const methods = Object.getOwnPropertyNames(protocol);
    expect(methods).not.toContain('serializeRequest');
    expect(methods).not.toContain('deserializeResponse');
    expect([protocol.constructor.name, protocol.getShapeId()]).toEqual(['AwsJson1_0Protocol', 'aws.protocols#awsJson1_0']);
    // what each is called with
    expect([protocol.serializeRequest.length, protocol.deserializeResponse.length]).toEqual([3, 3]);
  });

  it('is refused where it is not built as expected', () => {
    for (const protocol of [undefined, {}, { serializeRequest: () => {} }])
      expect(() => speakPlainJson({ config: { protocol } } as unknown as SQSClient)).toThrow('does not have the expected methods');
  });
});
