/** Whether documents match what a search asks, in the plainest form: what both stores must answer. */
import type { BucketPart } from '../../../src/store/readable.rules.ts';
import { documentWords, extensionsOf, type ObjectDocument } from '../../../src/ordering/document.ts';
import { fold, hasWords } from '../../../src/base/words.ts';
import type { Condition, Test } from '../../../src/store/conditions.rules.ts';
import type { Pattern } from '../../../src/store/pattern.rules.ts';
import type { ObjectFilter } from '../../../src/store/store.ts';

export function matchesFilter(document: ObjectDocument, filter: ObjectFilter): boolean {
  return (
    document.deleted === (filter.deleted ?? false) &&
    (filter.bucket === undefined || document.bucket === filter.bucket) &&
    (filter.key === undefined || document.key === filter.key) &&
    (filter.prefix === undefined || document.key.startsWith(filter.prefix)) &&
    (filter.within === undefined || isInOneOf(filter.within, document)) &&
    (filter.words === undefined || hasWords(documentWords(document), filter.words)) &&
    (filter.where ?? []).every((condition) => holdsFor(document, condition))
  );
}

export function isInOneOf(parts: readonly BucketPart[], { bucket, key }: Pick<ObjectDocument, 'bucket' | 'key'>): boolean {
  return parts.some((part) => part.bucket === bucket && key.startsWith(part.prefix));
}

function holdsFor(document: ObjectDocument, { anyOf, negated }: Condition): boolean {
  return anyOf.some((test) => succeeds(document, test)) !== negated;
}

function succeeds(document: ObjectDocument, test: Test): boolean {
  const { key, bucket, etag, extension, content_type: type, storage_class: storageClass } = document;
  switch (test.kind) {
    case 'words':
      return hasWords(documentWords(document), test.words);
    case 'contains':
      return fold(key).includes(test.text);
    case 'match':
      return expressionOf(test.pattern).test(fold(key));
    case 'bucket':
      return bucket === test.value;
    case 'key':
      return key === test.value;
    case 'from':
      return Buffer.compare(Buffer.from(key), Buffer.from(test.value)) >= 0;
    case 'prefix':
      return key.startsWith(test.value);
    case 'etag':
      return etag === test.value;
    case 'class':
      return storageClass === test.value;
    case 'extension':
      return extension !== undefined && extensionsOf(key, extension).includes(test.value);
    case 'type':
      return type !== undefined && (test.family ? type.startsWith(test.value) : type === test.value);
    case 'tag':
      return hasPair(document.tags, test);
    case 'meta':
      return hasPair(document.user_metadata, test);
    case 'size':
      return document.size !== undefined && document.size >= (test.min ?? 0) && document.size <= (test.max ?? Infinity);
    case 'modified':
      return isWithin(document.last_modified, test);
    case 'deleted':
      return isWithin(document.deleted_at, test);
  }
}

function hasPair(
  pairs: Readonly<Record<string, string>> | undefined,
  { name, value }: { readonly name: string; readonly value?: string },
): boolean {
  const held = Object.entries(pairs ?? {}).map((pair) => pair.join('='));
  return held.some((pair) => (value === undefined ? pair.startsWith(`${name}=`) : pair === `${name}=${value}`));
}

function isWithin(
  time: string | undefined,
  { from = -Infinity, before = Infinity }: { readonly from?: number; readonly before?: number },
): boolean {
  return time !== undefined && Date.parse(time) >= from && Date.parse(time) < before;
}

/** The regular expression of a pattern. */
export function expressionOf({ parts, anywhere }: Pattern): RegExp {
  const body = parts
    .map((part) =>
      'wild' in part
        ? part.wild === '*'
          ? '.*'
          : '.'
        : part.literal.replaceAll(/[^\p{L}\p{N}\s]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`),
    )
    .join('');
  return new RegExp(`^${anywhere ? '(?:.*/)?' : ''}${body}$`, 'su');
}
