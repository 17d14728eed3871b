/**
 * The selectors of an audit trail, which decide whose data events it records. A write replaces all of them, so ours is put
 * beside those that are there, in the kind that the trail has: basic or advanced.
 * https://docs.aws.amazon.com/awscloudtrail/latest/userguide/logging-data-events-with-cloudtrail.html
 */
import { z } from 'zod';
import { canonicalJson } from './canonical.ts';
import { shortRegistry } from './names.ts';

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
export function selectorName(wish: Pick<Bucket, 'bucket' | 'registry'>): string {
  return `tally ${shortRegistry(wish)} ${wish.bucket}`;
}

/** The name of the selector that the buckets of this registry share: one for each bucket would use up the values that a trail has. */
export function sharedSelectorName(wish: Pick<Bucket, 'registry'>): string {
  return `tally ${shortRegistry(wish)}`;
}

/** Our selector among advanced ones, for one bucket: as an apply writes it, and as it is printed for trails of others. */
export function advancedSelector(wish: Bucket): AdvancedSelector {
  return {
    Name: selectorName(wish),
    FieldSelectors: [
      { Field: 'eventCategory', Equals: ['Data'] },
      { Field: 'resources.type', Equals: [OBJECTS] },
      { Field: 'resources.ARN', StartsWith: [objectsOf(wish)] },
      { Field: 'readOnly', Equals: ['false'] },
      { Field: 'eventName', Equals: [...routedOperations] },
    ],
  };
}

/** Our selector among basic ones, which have no names: it is known by its one value. */
function basicSelector(wish: Bucket): BasicSelector {
  return { ReadWriteType: 'WriteOnly', IncludeManagementEvents: false, DataResources: [{ Type: OBJECTS, Values: [objectsOf(wish)] }] };
}

/** The shared selector for the buckets with these beginnings of ARNs. */
function sharedSelector(wish: Bucket, objects: readonly string[]): AdvancedSelector {
  const { FieldSelectors } = advancedSelector(wish);
  const StartsWith = [...new Set(objects)].sort();
  return {
    Name: sharedSelectorName(wish),
    FieldSelectors: FieldSelectors.map((field) => (field.Field === 'resources.ARN' ? { ...field, StartsWith } : field)),
  };
}

function objectsIn({ FieldSelectors }: AdvancedSelector): readonly string[] {
  return FieldSelectors.flatMap(({ Field, StartsWith = [] }) => (Field === 'resources.ARN' ? StartsWith : []));
}

function isOurs(selector: BasicSelector | AdvancedSelector, wish: Bucket): boolean {
  if (isAdvanced(selector)) return selector.Name === selectorName(wish) || selector.Name === sharedSelectorName(wish);
  return canonicalJson(asWritten(selector)) === canonicalJson(basicSelector(wish));
}

/** CloudTrail answers each basic selector with an empty list that was not written. */
function asWritten({ ExcludeManagementEventSources: excluded, ...selector }: BasicSelector): BasicSelector {
  return Array.isArray(excluded) && excluded.length > 0 ? { ...selector, ExcludeManagementEventSources: excluded } : selector;
}

/** Whether the trail records all that the rule needs, by our selector or by a wider one of others. */
export function recordsBucket(selectors: Selectors, wish: Omit<Bucket, 'registry'>): boolean {
  const objects = objectsOf(wish);
  if (selectors.kind === 'basic') {
    return selectors.list.some(({ ReadWriteType, DataResources = [] }) => {
      const values = DataResources.filter(({ Type }) => Type === OBJECTS).flatMap(({ Values = [] }) => Values);
      return ReadWriteType !== 'ReadOnly' && values.some((value) => value === `arn:${wish.partition}:s3` || covers(value, objects));
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

/** The selectors with ours; those of others stay equal and in their order. An advanced one has the bucket beside those that it has. */
export function withSelector({ kind, list }: Selectors, wish: Bucket): Selectors {
  if (kind === 'basic') return { kind, list: [...list.filter((each) => !isOurs(each, wish)), basicSelector(wish)] };
  return { kind, list: withShared(list, wish, [...sharedObjects(list, wish), objectsOf(wish)]) };
}

/** The selectors without the bucket; undefined if none of ours has it. */
export function withoutSelector({ kind, list }: Selectors, wish: Bucket): Selectors | undefined {
  if (kind === 'basic') {
    const others = list.filter((each) => !isOurs(each, wish));
    return others.length === list.length ? undefined : { kind, list: others };
  }
  const objects = sharedObjects(list, wish);
  const rest = objects.filter((each) => each !== objectsOf(wish));
  const hasOwn = list.some(({ Name }) => Name === selectorName(wish));
  return hasOwn || rest.length < objects.length ? { kind, list: withShared(list, wish, rest) } : undefined;
}

function sharedObjects(list: readonly AdvancedSelector[], wish: Bucket): readonly string[] {
  return list.filter(({ Name }) => Name === sharedSelectorName(wish)).flatMap(objectsIn);
}

function withShared(list: readonly AdvancedSelector[], wish: Bucket, objects: readonly string[]): readonly AdvancedSelector[] {
  const others = list.filter((each) => !isOurs(each, wish));
  return objects.length === 0 ? others : [...others, sharedSelector(wish, objects)];
}

/** The selectors of others. */
export function foreignSelectors({ list }: Selectors, wish: Bucket): readonly unknown[] {
  return list.filter((each) => !isOurs(each, wish));
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
