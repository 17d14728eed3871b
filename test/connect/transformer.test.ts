import { describe, expect, it } from 'vitest';
import { unwrap } from '../../src/events/envelope.ts';
import { documentedTransformer, specifiedTransformer, trailEvent, type Call } from '../support/audit-trail.ts';
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
    const madeOf = (call: Partial<Call> & Pick<Call, 'eventName'>) =>
      unwrap(transformed(each, trailEvent({ bucket: 'photos', requestId: 'r-1', timeMs: Date.UTC(2026, 0, 2), ...call })));
    expect(madeOf({ eventName: 'PutObject', key: 'a "b"\\c/ü.jpg', versionId: 'v1' })).toMatchObject({
      kind: 'records',
      records: [{ ok: true, record: { bucket: 'photos', dialect: 'synthetic', versionId: 'v1' } }],
    });
    expect(madeOf({ eventName: 'DeleteObject', key: 'k', versionId: 'v2', isDeleteMarker: true })).toMatchObject({
      records: [{ ok: true, record: { change: { kind: 'marker-created' } } }],
    });
    expect(madeOf({ eventName: 'DeleteObjects' })).toMatchObject({ records: [{ ok: true, record: { change: { kind: 'bulk-deleted' } } }] });
  });
});

it('the input transformer of docs/guides/connect.md is that of the specification, letter for letter', () => {
  expect(documentedTransformer).toEqual(specifiedTransformer);
});
