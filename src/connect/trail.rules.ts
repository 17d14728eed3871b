/**
 * The selectors of an audit trail, which decide whose data events it records. A write replaces all of them, so ours is put
 * beside those that are there, in the kind that the trail has: basic or advanced.
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

/** A bucket, and the buckets that the records say Tally has put into the trail. */
interface Selecting extends Bucket {
  readonly selected?: readonly string[];
}

/** The beginning of the ARNs of the bucket's objects. Without the slash it would select other buckets as well. */
function objectsOf({ bucket, partition }: Omit<Bucket, 'registry'>): string {
  return `arn:${partition}:s3:::${bucket}/`;
}

/** The name of our selector among advanced ones. It names the registry, because a trail may serve several. */
export function selectorName(spec: Pick<Bucket, 'registry'>): string {
  return `tally ${shortRegistry(spec)}`;
}

/**
 * An advanced selector: as it is printed for trails of others, for one bucket, or with these beginnings of ARNs ours, which all buckets
 * share, because one for each would use up the values that a trail has.
 */
export function advancedSelector(spec: Bucket, objects?: readonly string[]): AdvancedSelector {
  return {
    Name: objects === undefined ? `${selectorName(spec)} ${spec.bucket}` : selectorName(spec),
    FieldSelectors: [
      { Field: 'eventCategory', Equals: ['Data'] },
      { Field: 'resources.type', Equals: [OBJECTS] },
      { Field: 'resources.ARN', StartsWith: sorted(objects ?? [objectsOf(spec)]) },
      { Field: 'readOnly', Equals: ['false'] },
      { Field: 'eventName', Equals: [...routedOperations] },
    ],
  };
}

/** Our selector among basic ones: all buckets share it, because a trail has five of them. */
function basicSelector(objects: readonly string[]): BasicSelector {
  return { ReadWriteType: 'WriteOnly', IncludeManagementEvents: false, DataResources: [{ Type: OBJECTS, Values: sorted(objects) }] };
}

function sorted(objects: readonly string[]): string[] {
  return [...new Set(objects)].sort();
}

/** The selector of the bucket alone, in the kind that the trail has: as it is printed for trails of others. */
export function printedSelector(kind: Selectors['kind'] | undefined, spec: Bucket): BasicSelector | AdvancedSelector {
  return kind === 'basic' ? basicSelector([objectsOf(spec)]) : advancedSelector(spec);
}

function objectsIn(selector: BasicSelector | AdvancedSelector): readonly string[] {
  if (!isAdvanced(selector)) return (selector.DataResources ?? []).flatMap(({ Values = [] }) => Values);
  return selector.FieldSelectors.flatMap(({ Field, StartsWith = [] }) => (Field === 'resources.ARN' ? StartsWith : []));
}

/** A basic selector has no name: it is ours if it has our form, and the records name all of its buckets. */
function isOurs(selector: BasicSelector | AdvancedSelector, { selected = [], ...spec }: Selecting): boolean {
  if (isAdvanced(selector)) return selector.Name === selectorName(spec);
  const objects = objectsIn(selector);
  const known = new Set(selected.map((bucket) => objectsOf({ ...spec, bucket })));
  const isKnown = objects.length > 0 && objects.every((each) => known.has(each));
  return isKnown && canonicalJson(asWritten(selector)) === canonicalJson(basicSelector(objects));
}

/** CloudTrail answers each basic selector with an empty list that was not written. */
function asWritten({ ExcludeManagementEventSources: excluded, ...selector }: BasicSelector): BasicSelector {
  return Array.isArray(excluded) && excluded.length > 0 ? { ...selector, ExcludeManagementEventSources: excluded } : selector;
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

function isAdvanced(selector: BasicSelector | AdvancedSelector): selector is AdvancedSelector {
  return 'FieldSelectors' in selector;
}

/** The selectors with the bucket in ours; those of others stay equal and in their order. */
export function withSelector(selectors: Selectors, spec: Selecting): Selectors {
  return selecting(selectors, spec, [...selectedObjects(selectors, spec), objectsOf(spec)]);
}

/** The selectors without the bucket; undefined if ours does not have it. */
export function withoutSelector(selectors: Selectors, spec: Selecting): Selectors | undefined {
  const objects = selectedObjects(selectors, spec);
  const rest = objects.filter((each) => each !== objectsOf(spec));
  return rest.length < objects.length ? selecting(selectors, spec, rest) : undefined;
}

function selectedObjects({ list }: Selectors, spec: Selecting): readonly string[] {
  return list.filter((each) => isOurs(each, spec)).flatMap(objectsIn);
}

function selecting({ kind, list }: Selectors, spec: Selecting, objects: readonly string[]): Selectors {
  const isOthers = (each: BasicSelector | AdvancedSelector): boolean => !isOurs(each, spec);
  const isNone = objects.length === 0;
  if (kind === 'basic') return { kind, list: [...list.filter(isOthers), ...(isNone ? [] : [basicSelector(objects)])] };
  return { kind, list: [...list.filter(isOthers), ...(isNone ? [] : [advancedSelector(spec, objects)])] };
}

/** The selectors of others. */
export function foreignSelectors({ list }: Selectors, spec: Selecting): readonly unknown[] {
  return list.filter((each) => !isOurs(each, spec));
}

/** A selector as people find it: advanced ones have names, and basic ones values. */
export function selectorText(selector: unknown): string {
  const advanced = advancedSchema.safeParse(selector);
  if (advanced.success) return `the selector ${advanced.data.Name ?? 'without a name'}`;
  const basic = basicSchema.safeParse(selector);
  const values = basic.success ? (basic.data.DataResources ?? []).flatMap(({ Values = [] }) => Values) : [];
  return `the selector of ${values.length === 0 ? 'no resources' : values.join(' and ')}`;
}

/** The selectors as CloudTrail takes them. */
export function selectorsInput({ kind, list }: Selectors): {
  readonly EventSelectors?: unknown;
  readonly AdvancedEventSelectors?: unknown;
} {
  return kind === 'advanced' ? { AdvancedEventSelectors: list } : { EventSelectors: list };
}
