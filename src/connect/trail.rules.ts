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

/** Whether our buckets share it. A basic selector has no name: it has our form, and what others have in it stays. */
function isOurs(selector: BasicSelector | AdvancedSelector, spec: Bucket): boolean {
  return isAdvanced(selector) ? selector.Name === selectorName(spec) : isAsWritten(selector, spec);
}

/** Whether others have altered nothing but its values. */
function isAsWritten(selector: BasicSelector | AdvancedSelector, spec: Bucket): boolean {
  const objects = objectsIn(selector);
  const wanted = isAdvanced(selector) ? advancedSelector(spec, objects) : basicSelector(objects);
  return objects.length > 0 && canonicalJson(isAdvanced(selector) ? selector : asWritten(selector)) === canonicalJson(wanted);
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
export function withSelector({ kind, list }: Selectors, spec: Bucket): Selectors {
  const at = list.findLastIndex((each) => isOurs(each, spec));
  const present = list[at];
  const objects = [...(present === undefined ? [] : objectsIn(present)), objectsOf(spec)];
  return kind === 'basic'
    ? { kind, list: placed(list, at, basicSelector(objects)) }
    : { kind, list: placed(list, at, advancedSelector(spec, objects)) };
}

function placed<Selector>(list: readonly Selector[], at: number, selector: Selector): readonly Selector[] {
  return at === -1 ? [...list, selector] : list.with(at, selector);
}

/** The selectors without the bucket, or why it stays in them; undefined if ours does not have it. A basic selector of our form may be another's. */
export function withoutSelector({ kind, list }: Selectors, spec: Selecting): Selectors | string | undefined {
  const found = list.filter((each) => objectsIn(each).includes(objectsOf(spec)));
  if (kind === 'basic' && spec.selected?.includes(spec.bucket) !== true)
    return found.some((each) => isOurs(each, spec)) ? 'nothing shows that Tally added the bucket to it' : undefined;
  const isIn = (each: BasicSelector | AdvancedSelector): boolean => found.includes(each) && isOurs(each, spec) && isAsWritten(each, spec);
  if (!found.some(isIn)) return found.some((each) => kind === 'basic' || isOurs(each, spec)) ? 'someone else changed it' : undefined;
  const rest = (each: BasicSelector | AdvancedSelector): readonly string[] =>
    objectsIn(each).filter((object) => object !== objectsOf(spec));
  const without = <Selector extends BasicSelector | AdvancedSelector>(
    of: readonly Selector[],
    made: (objects: readonly string[]) => Selector,
  ) => of.flatMap((each) => (!isIn(each) ? [each] : rest(each).length === 0 ? [] : [made(rest(each))]));
  return kind === 'basic'
    ? { kind, list: without(list, basicSelector) }
    : { kind, list: without(list, (objects) => advancedSelector(spec, objects)) };
}

/** What others have the trail record: their selectors, and in a basic one of our form the values that no record names. */
export function foreignSelectors({ list }: Selectors, spec: Selecting): readonly unknown[] {
  const known = new Set(spec.selected?.map((bucket) => objectsOf({ ...spec, bucket })));
  return list.flatMap((each) => {
    if (!isOurs(each, spec)) return [each];
    const theirs = isAdvanced(each) ? [] : objectsIn(each).filter((object) => !known.has(object));
    return theirs.length === 0 ? [] : [basicSelector(theirs)];
  });
}

/** Ours that have more or less than Tally writes: a write takes that away. */
export function alteredSelectors({ list }: Selectors, spec: Bucket): readonly unknown[] {
  return list.filter((each) => isOurs(each, spec) && !isAsWritten(each, spec));
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
