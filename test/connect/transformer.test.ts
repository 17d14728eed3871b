import { describe, expect, it } from 'vitest';
import { unwrap } from '../../src/events/envelope.ts';
import { documentedTransformer, specifiedTransformer } from '../support/audit-trail.ts';
import type { InputTransformer } from '../../src/connect/plan.rules.ts';
import { transformer } from '../../src/connect/sources/routed.ts';

/** What EventBridge makes of an event: values in quotes, and an empty string where there is none. */
function transformed({ InputPathsMap = {}, InputTemplate = '' }: InputTransformer, event: object): string {
  return InputTemplate.replaceAll(/<(\w+)>/g, (_, name: string) => {
    const path = InputPathsMap[name]!.split('.').slice(1);
    const value = path.reduce<unknown>(
      (at, field) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[field] : undefined),
      event,
    );
    return JSON.stringify(value ?? '');
  });
}

const detail = {
  awsRegion: 'eu-west-1',
  eventName: 'PutObject',
  eventTime: '2026-01-02T03:04:05Z',
  eventID: 'e-1',
  eventSource: 's3.amazonaws.com',
  requestID: 'r-1',
  requestParameters: { bucketName: 'photos', key: 'a "b"\\c/ü.jpg' },
  responseElements: { 'x-amz-version-id': 'v1' },
};

describe.each([
  ['Tally’s own', transformer],
  ['the smallest', specifiedTransformer],
])('%s input transformer', (_, each) => {
  it('uses every path once or more, and names no other', () => {
    const { InputPathsMap = {}, InputTemplate = '' } = each;
    const used = [...InputTemplate.matchAll(/<(\w+)>/g)].map(([, name]) => name);
    expect(new Set(used)).toEqual(new Set(Object.keys(InputPathsMap)));
    expect(InputTemplate).not.toMatch(/"<|>"/);
  });

  it('makes records that are understood', () => {
    const put = unwrap(transformed(each, { detail }));
    expect(put).toMatchObject({
      kind: 'records',
      records: [{ ok: true, record: { bucket: 'photos', dialect: 'synthetic', versionId: 'v1' } }],
    });
    const marker = { ...detail, eventName: 'DeleteObject', responseElements: { 'x-amz-delete-marker': 'true', 'x-amz-version-id': 'v2' } };
    expect(unwrap(transformed(each, { detail: marker }))).toMatchObject({
      records: [{ ok: true, record: { change: { kind: 'marker-created' } } }],
    });
    const bulk = { ...detail, eventName: 'DeleteObjects', requestParameters: { bucketName: 'photos' }, responseElements: null };
    expect(unwrap(transformed(each, { detail: bulk }))).toMatchObject({
      records: [{ ok: true, record: { change: { kind: 'bulk-deleted' } } }],
    });
  });
});

describe('the input transformer', () => {
  it('of docs/guides/connect.md is that of the specification, letter for letter', () => {
    expect(documentedTransformer).toEqual(specifiedTransformer);
  });
});
