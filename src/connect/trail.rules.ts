/**
 * The selectors of an audit trail, which decide whose data events it records. A write replaces all of them, so Tally's is put beside
 * those that are there, among advanced ones only: they have names. A basic selector has none, so nothing would tell whose it is.
 * https://docs.aws.amazon.com/awscloudtrail/latest/userguide/logging-data-events-with-cloudtrail.html
 */
import { z } from 'zod';
import { canonicalJson } from './canonical.rules.ts';
import { shortRegistry } from './names.rules.ts';

const fieldSchema = z.looseObject({
  Field: z.string(),
  Equals: z.array(z.string()).optional(),
  StartsWith: z.array(z.string()).optional(),
});
const advancedSchema = z.looseObject({ Name: z.string().optional(), FieldSelectors: z.array(fieldSchema) });
export type AdvancedSelector = z.infer<typeof advancedSchema>;

const basicSchema = z.looseObject({
  ReadWriteType: z.string().optional(),
  DataResources: z.array(z.looseObject({ Type: z.string().optional(), Values: z.array(z.string()).optional() })).optional(),
});
type BasicSelector = z.infer<typeof basicSchema>;

/** The selectors of a trail. A trail has one kind only. */
export type Selectors =
  | { readonly kind: 'advanced'; readonly list: readonly AdvancedSelector[] }
  | { readonly kind: 'basic'; readonly list: readonly BasicSelector[] };

/** Reads what CloudTrail answers. Undefined if it has another form. */
export function parseSelectors(answer: {
  readonly EventSelectors?: unknown;
  readonly AdvancedEventSelectors?: unknown;
}): Selectors | undefined {
  const advanced = z.array(advancedSchema).safeParse(answer.AdvancedEventSelectors ?? []);
  const basic = z.array(basicSchema).safeParse(answer.EventSelectors ?? []);
  if (!advanced.success || !basic.success) return undefined;
  return advanced.data.length > 0 ? { kind: 'advanced', list: advanced.data } : { kind: 'basic', list: basic.data };
}

const OBJECTS = 'AWS::S3::Object';

/** The five operations of the routed source. PostObject and RenameObject are not among them. */
export const routedOperations = ['PutObject', 'CopyObject', 'CompleteMultipartUpload', 'DeleteObject', 'DeleteObjects'] as const;

interface Bucket {
  readonly bucket: string;
  readonly partition: string;
  readonly registry: string;
}

/** The beginning of the ARNs of the bucket's objects. Without the slash it would select other buckets as well. */
function objectsOf({ bucket, partition }: Omit<Bucket, 'registry'>): string {
  return `arn:${partition}:s3:::${bucket}/`;
}

/** The name of our selector among advanced ones. It names the registry, because a trail may serve several. */
export function selectorName(spec: Pick<Bucket, 'registry'>): string {
  return `tally ${shortRegistry(spec)}`;
}

/** Ours with these beginnings of ARNs: all buckets share it, because one for each would use up the values that a trail has. */
function ourSelector(spec: Bucket, objects: readonly string[]): AdvancedSelector {
  return {
    Name: selectorName(spec),
    FieldSelectors: [
      { Field: 'eventCategory', Equals: ['Data'] },
      { Field: 'resources.type', Equals: [OBJECTS] },
      { Field: 'resources.ARN', StartsWith: [...new Set(objects)].sort() },
      { Field: 'readOnly', Equals: ['false'] },
      { Field: 'eventName', Equals: [...routedOperations] },
    ],
  };
}

/** The selector of the bucket alone, as it is printed for trails that Tally doesn't write to. */
export function advancedSelector(spec: Bucket): AdvancedSelector {
  return { ...ourSelector(spec, [objectsOf(spec)]), Name: `${selectorName(spec)} ${spec.bucket}` };
}

/** The same in the kind that the trail has. */
export function printedSelector(kind: Selectors['kind'], spec: Bucket): BasicSelector | AdvancedSelector {
  if (kind === 'advanced') return advancedSelector(spec);
  return { ReadWriteType: 'WriteOnly', IncludeManagementEvents: false, DataResources: [{ Type: OBJECTS, Values: [objectsOf(spec)] }] };
}

function objectsIn({ FieldSelectors }: AdvancedSelector): readonly string[] {
  return FieldSelectors.flatMap(({ Field, StartsWith = [] }) => (Field === 'resources.ARN' ? StartsWith : []));
}

function isOurs({ Name }: AdvancedSelector, spec: Bucket): boolean {
  return Name === selectorName(spec);
}

/** Whether others have altered nothing but its values. */
function isAsWritten(selector: AdvancedSelector, spec: Bucket): boolean {
  const objects = objectsIn(selector);
  return objects.length > 0 && canonicalJson(selector) === canonicalJson(ourSelector(spec, objects));
}

/** Whether the trail records all that the rule needs, by our selector or by a wider one of others. */
export function recordsBucket(selectors: Selectors, spec: Omit<Bucket, 'registry'>): boolean {
  const objects = objectsOf(spec);
  if (selectors.kind === 'basic') {
    return selectors.list.some(({ ReadWriteType, DataResources = [] }) => {
      const values = DataResources.filter(({ Type }) => Type === OBJECTS).flatMap(({ Values = [] }) => Values);
      return ReadWriteType !== 'ReadOnly' && values.some((value) => value === `arn:${spec.partition}:s3` || covers(value, objects));
    });
  }
  return selectors.list.some(({ FieldSelectors }) => FieldSelectors.every((field) => admits(field, objects)));
}

/** A value ends at a slash, or names all buckets. */
function covers(value: string, objects: string): boolean {
  return objects.startsWith(value) && (value === objects || value.endsWith(':::'));
}

/** Whether a condition of an advanced selector lets all needed events of the bucket pass. An unknown one may not. */
function admits(field: AdvancedSelector['FieldSelectors'][number], objects: string): boolean {
  const { Field, Equals, StartsWith, ...others } = field;
  if (Object.values(others).some((values) => Array.isArray(values) && values.length > 0)) return false;
  const has = (value: string): boolean => Equals?.includes(value) === true;
  switch (Field) {
    case 'eventCategory':
      return has('Data');
    case 'resources.type':
      return has(OBJECTS);
    case 'resources.ARN':
      return StartsWith?.some((value) => covers(value, objects)) === true;
    case 'readOnly':
      return has('false');
    case 'eventName':
      return routedOperations.every(has);
    default:
      return false;
  }
}

/** The selectors with the bucket in ours; those of others stay equal and in their order. */
export function withSelector(list: readonly AdvancedSelector[], spec: Bucket): readonly AdvancedSelector[] {
  const at = list.findLastIndex((each) => isOurs(each, spec));
  const present = list[at];
  const selector = ourSelector(spec, [...(present === undefined ? [] : objectsIn(present)), objectsOf(spec)]);
  return present === undefined ? [...list, selector] : list.with(at, selector);
}

/** The selectors without the bucket, or why it stays in them; undefined if ours does not have it. */
export function withoutSelector(list: readonly AdvancedSelector[], spec: Bucket): readonly AdvancedSelector[] | string | undefined {
  const found = list.filter((each) => isOurs(each, spec) && objectsIn(each).includes(objectsOf(spec)));
  if (found.length === 0) return undefined;
  if (!found.every((each) => isAsWritten(each, spec))) return 'someone else changed it';
  const rest = list.flatMap((each) => {
    const objects = objectsIn(each).filter((object) => object !== objectsOf(spec));
    return !found.includes(each) ? [each] : objects.length === 0 ? [] : [ourSelector(spec, objects)];
  });
  return rest.length === 0 ? 'it is the only one, and a trail must have one' : rest;
}

/** What others have the trail record. */
export function foreignSelectors(list: readonly AdvancedSelector[], spec: Bucket): readonly AdvancedSelector[] {
  return list.filter((each) => !isOurs(each, spec));
}

/** Ours that have more or less than Tally writes: a write takes that away. */
export function alteredSelectors(list: readonly AdvancedSelector[], spec: Bucket): readonly AdvancedSelector[] {
  return list.filter((each) => isOurs(each, spec) && !isAsWritten(each, spec));
}

/** A selector as people find it. */
export function selectorText(selector: unknown): string {
  return `the selector ${advancedSchema.safeParse(selector).data?.Name ?? 'without a name'}`;
}
