import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentOf, sameContent, type PresentState } from '../../src/ordering/document.ts';
import { enrichedBytes, enrichedState, isEnriched, isLastingVersion, isSameObject, plainDocument } from '../../src/ordering/enrichment.ts';

const T = Date.UTC(2026, 0, 2, 3, 4, 5);
const event: PresentState = { present: true, etag: 'e', sizeBytes: 7, lastModifiedMs: T + 678, lastModifiedExact: false };
const seen: PresentState = {
  present: true,
  etag: 'e',
  sizeBytes: 7,
  lastModifiedMs: T,
  contentType: 'text/plain',
  userMetadata: { author: 'me' },
  storageClass: 'GLACIER',
  expiresAtMs: T + 86_400_000,
};

function documentFrom(state: PresentState) {
  const facts = { bucket: 'b', key: 'k', clock: 5, settled: true, source: 'native', cause: {}, stateAtMs: T, nowMs: T } as const;
  return documentOf({ ...facts, state });
}

describe('an exact event’s object with what a HEAD said of it', () => {
  it('has the event’s time where the HEAD says no LastModified', () => {
    const { lastModifiedMs: _, ...undated } = seen;
    expect(enrichedState(event, undated)).toMatchObject({ lastModifiedMs: T + 678, lastModifiedExact: false });
  });

  it('is not known from an answer about other bytes', () => {
    expect(enrichedState(event, { ...seen, etag: 'f' })).toBeUndefined();
    expect(enrichedState({ ...event, versionId: 'v1' }, { ...seen, versionId: 'v1', etag: 'f' })).toBeUndefined();
    const { etag: _, ...nameless } = seen;
    expect(enrichedState(event, nameless)).toBeUndefined();
  });

  it.each([undefined, 'null'])('is not known from an answer about the same bytes put later, where the version is %s', (versionId) => {
    const told = { ...event, ...(versionId !== undefined && { versionId }) };
    expect(enrichedState(told, { ...seen, lastModifiedMs: T + 678 + 15_000 })).toBeDefined();
    expect(enrichedState(told, { ...seen, lastModifiedMs: T + 678 + 15_001 })).toBeUndefined();
    // an upload may have begun long before its event
    expect(enrichedState(told, { ...seen, lastModifiedMs: T - 3_600_000 })).toBeDefined();
  });
});

it('a version id names one object for ever, unless it is null', () => {
  expect([undefined, 'null', 'v1', ''].map(isLastingVersion)).toEqual([false, false, true, true]);
});

it('two HEAD requests saw one object where all that tells objects apart is the same', () => {
  expect(isSameObject(seen, { ...seen, contentType: 'other' })).toBe(true);
  for (const change of [{ etag: 'f' }, { sizeBytes: 8 }, { lastModifiedMs: T + 1_000 }, { versionId: 'null' }]) {
    expect(isSameObject(seen, { ...seen, ...change })).toBe(false);
  }
});

describe('an enriched document', () => {
  const document = documentFrom({ ...seen, tags: { a: 'b' } });

  it('says content type, user metadata and tags; S3’s “none” is not “not known”', () => {
    expect(document).toMatchObject({ content_type: 'text/plain', user_metadata: { author: 'me' }, tags: { a: 'b' } });
    expect(documentFrom({ ...event, userMetadata: {}, tags: {} })).toMatchObject({ user_metadata: {}, tags: {} });
    expect(documentFrom(event)).not.toHaveProperty('tags');
  });

  it('is told from a plain one, and is plain without its enrichment', () => {
    expect(isEnriched(document)).toBe(true);
    expect(isEnriched(plainDocument(document))).toBe(false);
    expect(sameContent(plainDocument(document), document)).toBe(true);
    expect(plainDocument(document)).toEqual(documentFrom({ ...event, lastModifiedMs: T, lastModifiedExact: true }));
    for (const alone of [{ userMetadata: {} }, { tags: {} }, { contentType: '' }]) {
      expect(isEnriched(documentFrom({ ...event, ...alone }))).toBe(true);
    }
  });

  it('weighs at least what its enrichment weighs, and a plain one nothing more', () => {
    expect(enrichedBytes(documentFrom(event))).toBe(0);
    const texts = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), { maxKeys: 10 });
    fc.assert(
      fc.property(texts, texts, fc.string({ unit: 'grapheme' }), (userMetadata, tags, contentType) => {
        const written =
          Object.entries({ ...userMetadata, ...tags })
            .flat()
            .join('') + contentType;
        expect(enrichedBytes(documentFrom({ ...event, userMetadata, tags, contentType }))).toBeGreaterThanOrEqual(
          Buffer.byteLength(written),
        );
      }),
    );
  });
});
