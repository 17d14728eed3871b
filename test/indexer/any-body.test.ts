/**
 * A record that names a connected bucket and a key is at worst a HEAD request: never a dead letter, never forgotten, and never
 * believed beyond what S3 said. Bodies of all stores and bridges, in every wrapper, with fields left out, mistyped and renamed, are
 * read and decided; data-path.test.ts has what becomes of a decision.
 */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { bucketSources, type BucketSource } from '../../src/records/bucket.ts';
import { hintOf } from '../../src/ordering/hint.ts';
import { isLong } from '../support/breadth.ts';
import { fixtureNames, formEncoded, inEnvelope, messagesOf, resultsOf } from '../support/event-fixtures.ts';
import { BUCKET, sequencerAt } from '../support/worlds/ingest.ts';

/** Names that are known to change nothing of a document; repeated here, because the list is the promise. */
const WITHOUT_EFFECT = [
  /^(s3:)?ObjectAcl:Put$/,
  /^(s3:)?ObjectAnnotation:/,
  /^(s3:)?ObjectAccessed:/,
  /^(s3:)?ObjectCreated:(PutRetention|PutLegalHold)$/,
  /^(s3:)?Replication:Operation/,
  /^(s3:)?ObjectTagging:/,
  /^Object (ACL Updated|Tags Added|Tags Deleted)$/,
  /^(Get|Head|List)[A-Z]/,
  /^(PutObjectTagging|DeleteObjectTagging)$/,
  /^PutObject(Acl|Retention|LegalHold)$/,
];

type Json = Record<string, unknown>;
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null;

/** Where a record names its bucket and its key. */
interface Site {
  readonly bucket: Json;
  readonly bucketField: string;
  readonly object: Json;
  readonly keyField: string;
  /** What S3 itself would do to the key here. */
  readonly isForm: boolean;
  /** The objects around the record's own fields, outermost first. */
  readonly around: readonly Json[];
}

interface Sample {
  readonly operation: string;
  readonly body: unknown;
  readonly dialect: string | undefined;
  readonly eventName: string;
  readonly isForm: boolean | undefined;
}

function siteOf(value: unknown, around: readonly Json[] = []): Site | undefined {
  if (!isJson(value)) return undefined;
  const { bucket, object, requestParameters } = value;
  const here = { around: [...around, value] };
  if (isJson(bucket) && isJson(object) && typeof object['key'] === 'string') {
    const record = around.at(-1) ?? value;
    const isForm = 'eventSource' in record || 'eventVersion' in record;
    return { ...here, bucket, bucketField: 'name', object, keyField: 'key', isForm };
  }
  if (isJson(requestParameters) && typeof requestParameters['key'] === 'string')
    return {
      ...here,
      bucket: requestParameters,
      bucketField: 'bucketName',
      object: requestParameters,
      keyField: 'key',
      isForm: false,
    };
  for (const child of Object.values(value)) {
    const site = siteOf(child, here.around);
    if (site !== undefined) return site;
  }
  return undefined;
}

/** What an SNS envelope contains, however deep. */
function opened(body: unknown): unknown {
  return isJson(body) && typeof body['Message'] === 'string' && body['Message'].startsWith('{')
    ? opened(JSON.parse(body['Message']))
    : body;
}

function nameOf({ around }: Site): string {
  const names = around.flatMap(({ eventName, 'detail-type': type }) => [eventName, type].filter((each) => typeof each === 'string'));
  return names.at(-1) ?? '';
}

/** The operations of fixtures that name no key: a DeleteObjects becomes a gap, and the others change no object. */
const WITHOUT_KEY = new Set(['DeleteObjects', 'ListBuckets', 'PutBucketNotificationConfiguration']);

function dialectOf(body: unknown): string | undefined {
  const [result] = resultsOf(body, false);
  return result?.ok === true ? result.record.dialect : undefined;
}

function samplesOf(): readonly Sample[] {
  return fixtureNames.flatMap((name) =>
    messagesOf(name).flatMap(({ operation, body: text, keys }) => {
      const body = opened(JSON.parse(text));
      const site = siteOf(body);
      if (site !== undefined && site.object[site.keyField] !== '')
        return [
          { operation, body, dialect: dialectOf(body), eventName: nameOf(site), isForm: keys === undefined ? undefined : keys === 'form' },
        ];
      if (WITHOUT_KEY.has(operation)) return [];
      throw new Error(`${name}: siteOf finds no key in the body of ${operation}; teach it where this dialect has it`);
    }),
  );
}

// ── what is done to a body ─────────────────────────────────────────────────────────────────────────────────────────

const strange = fc.constantFrom<unknown>(null, '', 7, -1, 1.5, true, [], {}, ['x'], { x: 1 }, '\ud800', 'x'.repeat(2_000));

type Damage =
  | { readonly kind: 'leave-out'; readonly at: number }
  | { readonly kind: 'mistype'; readonly at: number; readonly value: unknown }
  | { readonly kind: 'rename'; readonly at: number };

const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ kind: fc.constant('leave-out' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('mistype' as const), at: fc.nat(), value: strange }),
  fc.record({ kind: fc.constant('rename' as const), at: fc.nat() }),
);

/** All fields but those that lead to the bucket's name and the key. */
function fieldsOf(site: Site): readonly (readonly [Json, string])[] {
  const kept = new Set<unknown>([...site.around, site.bucket, site.object]);
  const owners = [...new Set([...site.around, site.bucket, site.object])];
  return owners.flatMap((owner) =>
    Object.keys(owner).flatMap((field) => {
      const leads = (owner === site.bucket && field === site.bucketField) || (owner === site.object && field === site.keyField);
      return leads || kept.has(owner[field]) || Array.isArray(owner) ? [] : [[owner, field] as const];
    }),
  );
}

/** A text of another kind, or another size, is a lie, not a field that cannot be read. */
function mistyped(field: string, value: unknown): unknown {
  if (field === 'size' && typeof value === 'number') return 'x';
  return ['eTag', 'etag', 'versionId', 'version-id', 'x-amz-version-id', 'errorCode', 'Message'].includes(field) &&
    typeof value === 'string'
    ? 7
    : value;
}

function suffer(site: Site, damages: readonly Damage[]): void {
  for (const each of damages) {
    const fields = fieldsOf(site);
    const [owner, field] = fields[each.at % Math.max(1, fields.length)] ?? [];
    if (owner === undefined || field === undefined) return;
    const old = owner[field];
    if (each.kind === 'mistype') owner[field] = mistyped(field, each.value);
    else Reflect.deleteProperty(owner, field);
    if (each.kind === 'rename') owner[`${field}X`] = old;
  }
}

const wrappers: Readonly<Record<string, (body: unknown) => unknown>> = {
  'as it is': (body) => body,
  'in SNS': (body) => inEnvelope(body),
  'in SNS twice': (body) => inEnvelope(inEnvelope(body)),
  'in SNS without a type': (body) => ({ ...inEnvelope(body), Type: undefined }),
  'a message that is no text': (body) => ({ ...inEnvelope(body), Message: body }),
  'without Records': (body) => (isJson(body) && Array.isArray(body['Records']) ? body['Records'][0] : body),
  'Records without an array': (body) => (isJson(body) && Array.isArray(body['Records']) ? { Records: body['Records'][0] } : body),
  'an array of records': (body) => (isJson(body) && Array.isArray(body['Records']) ? body['Records'] : [body]),
  'an array of bodies': (body) => [body],
  'only the detail': (body) => (isJson(body) && isJson(body['detail']) ? body['detail'] : body),
  'a CloudEvent': (body) => ({ specversion: '1.0', id: '1', source: 'aws:s3', type: 'com.amazonaws.s3', data: body }),
  // a bridge's own fields must not be taken for a record
  'a CloudEvent with text': (body) => ({
    specversion: '1.0',
    id: '1',
    bucket: BUCKET,
    key: 'unlike',
    source: 'aws:s3',
    type: 'com.amazonaws.s3',
    data: JSON.stringify(body),
  }),
  'what Lambda receives': (body) => ({ Records: [{ eventSource: 'aws:sqs', body: JSON.stringify(body) }] }),
  'encoded twice': (body) => JSON.stringify(body),
  'a CloudEvent with bytes': (body) => ({ specversion: '1.0', data_base64: Buffer.from(JSON.stringify(body)).toString('base64') }),
  'what SNS gives to a function': (body) => ({ Records: [{ EventSource: 'aws:sns', EventVersion: '1.0', Sns: inEnvelope(body) }] }),
  'without Records, which are null': (body) =>
    isJson(body) && Array.isArray(body['Records']) ? { ...body['Records'][0], Records: null } : body,
  'without Records, which are empty': (body) =>
    isJson(body) && Array.isArray(body['Records']) ? { ...body['Records'][0], Records: [] } : body,
  'a CloudEvent in SNS': (body) => inEnvelope({ specversion: '1.0', data: body }),
};

// ── what is read of it ─────────────────────────────────────────────────────────────────────────────────────────────

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const KEYS = ['plain', 'dir/a b', 'a+b', '100%', 'a%20b', 'a%2Bb c', 'ünï+😀', '%ff'];

interface Case {
  readonly sample: Sample;
  readonly wrapper: string;
  readonly key: string;
  readonly damages: readonly Damage[];
  /** How this store spells keys, where the store is not AWS. */
  readonly isForm: boolean;
}

/** As often of each dialect, however few its samples are. */
const anySample = fc.oneof(
  ...Map.groupBy(samplesOf(), ({ dialect }) => dialect)
    .values()
    .map((each) => fc.constantFrom(...each)),
);
const anyCase: fc.Arbitrary<Case> = fc.record({
  sample: anySample,
  wrapper: fc.constantFrom(...Object.keys(wrappers)),
  key: fc.constantFrom(...KEYS),
  damages: fc.array(damage, { maxLength: 4 }),
  isForm: fc.boolean(),
});

/** What S3 says of the key after the change; undefined where nothing changed. */
function stateAfter({ sample: { operation, eventName } }: Case) {
  if (isIdle(operation, eventName)) return undefined;
  const isDelete = /Delete|Removed|expir|lost/i.test(operation + eventName);
  return isDelete ? ({ present: false } as const) : ({ present: true, etag: 'etag-1', sizeBytes: 7 } as const);
}

const isIdle = (operation: string, eventName: string): boolean =>
  /denied/i.test(operation) || WITHOUT_EFFECT.some((each) => each.test(eventName));

/** The body that tells the change of a key, before anything is done to it. */
function told(each: Case, isAws: boolean): { readonly body: unknown; readonly site: Site } {
  const { sample, key, isForm } = each;
  const body = structuredClone(sample.body);
  const site = siteOf(body)!;
  site.bucket[site.bucketField] = BUCKET;
  const spelled = sample.isForm ?? (isAws ? site.isForm : isForm);
  site.object[site.keyField] = spelled ? formEncoded(key) : key;
  const { etag, sizeBytes }: { readonly etag?: string; readonly sizeBytes?: number } = { ...stateAfter(each) };
  const facts: Json = { eTag: etag, etag, size: sizeBytes, sequencer: sequencerAt(NOW_MS) };
  for (const [field, value] of Object.entries(facts)) {
    // an identifier that the store makes is only replaced where it is one of S3's
    if (typeof site.object[field] === typeof value && !(field === 'size' && typeof site.object[field] === 'string'))
      site.object[field] = value;
  }
  for (const field of ['versionId', 'version-id']) Reflect.deleteProperty(site.object, field);
  for (const around of site.around)
    for (const field of ['eventTime', 'time']) if (field in around) around[field] = new Date(NOW_MS).toISOString();
  return { body, site };
}

function expectRead(each: Case, source: BucketSource, isAws: boolean): void {
  const { body, site } = told(each, isAws);
  suffer(site, each.damages);
  const results = resultsOf(JSON.stringify(wrappers[each.wrapper]!(body)), isAws);
  const rejected = results.flatMap((result) => (result.ok ? [] : [result.fault]));
  const records = results.flatMap((result) => (result.ok ? [result.record] : []));
  const { operation, eventName } = each.sample;
  const mayBeIgnored = isIdle(operation, eventName) && records.some(({ change }) => change.kind === 'ignored');
  const ofKey = records.some(({ bucket, key }) => bucket === BUCKET && key === each.key);
  expect({ each, rejected, isKnown: ofKey || mayBeIgnored }).toEqual({ each, rejected: [], isKnown: true });
  const facts = { source, floor: 0, enrich: 'tags', versioning: { status: 'never', observedAtMs: NOW_MS + 9_000 } } as const;
  for (const record of records) {
    const hint = hintOf(record, facts, { sentAtMs: NOW_MS, nowMs: NOW_MS });
    // all else is observed, or resolved by an observation
    const believed = hint.kind === 'exact' ? { key: record.key, state: hint.state } : undefined;
    if (believed !== undefined)
      expect({ each, believed }).toMatchObject({ each, believed: { key: each.key, state: stateAfter(each) ?? { present: 'as before' } } });
    expect({ each, isForgotten: hint.kind === 'ignored' && !mayBeIgnored }).toEqual({ each, isForgotten: false });
  }
}

it('any record that names a bucket and a key is read, and states no more than what S3 says', () => {
  fc.assert(
    fc.property(anyCase, fc.constantFrom(...bucketSources), fc.boolean(), (each, source, isAws) => {
      // an unknown store may spell a key as AWS would spell another: then both are looked at, so none is a lie
      if (!isAws || each.sample.isForm !== false) expectRead(each, source, isAws);
    }),
    { numRuns: isLong ? 20_000 : 1_500 },
  );
});
