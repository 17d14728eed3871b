/**
 * The selectors of an audit trail, which decide whose data events it records. A write replaces all of them, so Tally's is put beside
 * those that are there, in the kind that the trail has. An advanced selector has a name, which says whose it is. A basic one has none:
 * Tally's are those of exactly its form, and in them a bucket's record answers for the bucket's own value only.
 * https://docs.aws.amazon.com/awscloudtrail/latest/userguide/logging-data-events-with-cloudtrail.html
 */
import { z } from 'zod';
import { shortRegistry } from './names.rules.ts';
import { canonicalJson } from './policy.rules.ts';

/** CloudTrail answers each condition with an empty list for each operator that it lacks, and refuses such lists in a write. */
const fieldSchema = z.preprocess(
  (answered: unknown) => Object.fromEntries(Object.entries(answered ?? {}).filter(([, values]) => !isEmpty(values))),
  z.looseObject({ Field: z.string(), Equals: z.array(z.string()).optional(), StartsWith: z.array(z.string()).optional() }),
);

function isEmpty(values: unknown): boolean {
  return Array.isArray(values) && values.length === 0;
}

const advancedSchema = z.looseObject({ Name: z.string().optional(), FieldSelectors: z.array(fieldSchema) });
export type AdvancedSelector = z.infer<typeof advancedSchema>;

const basicSchema = z.looseObject({
  ReadWriteType: z.string().optional(),
  IncludeManagementEvents: z.boolean().optional(),
  DataResources: z.array(z.looseObject({ Type: z.string().optional(), Values: z.array(z.string()).optional() })).optional(),
});
type BasicSelector = z.infer<typeof basicSchema>;

type Selector = BasicSelector | AdvancedSelector;

/** The selectors of a trail. A trail has one kind only. */
export interface Selectors {
  readonly kind: 'basic' | 'advanced';
  readonly list: readonly Selector[];
}

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

/** A basic selector as Tally writes it. CloudTrail answers each with an empty list that nobody wrote. */
const writtenSchema = z.strictObject({
  ReadWriteType: z.literal('WriteOnly'),
  IncludeManagementEvents: z.literal(false),
  DataResources: z.tuple([z.strictObject({ Type: z.literal(OBJECTS), Values: z.array(z.string()).min(1) })]),
  ExcludeManagementEventSources: z.tuple([]).optional(),
});

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
function ourAdvanced(spec: Bucket, objects: readonly string[]): AdvancedSelector {
  return {
    Name: selectorName(spec),
    FieldSelectors: [
      { Field: 'eventCategory', Equals: ['Data'] },
      { Field: 'resources.type', Equals: [OBJECTS] },
      { Field: 'resources.ARN', StartsWith: objects.toSorted() },
      { Field: 'readOnly', Equals: ['false'] },
      { Field: 'eventName', Equals: [...routedOperations] },
    ],
  };
}

/** Ours among basic ones: all buckets share it, because a trail has five. */
function ourBasic(objects: readonly string[]): BasicSelector {
  return { ReadWriteType: 'WriteOnly', IncludeManagementEvents: false, DataResources: [{ Type: OBJECTS, Values: [...objects] }] };
}

/** The selector of the bucket alone, as it is printed for trails that Tally doesn't write to. */
export function advancedSelector(spec: Bucket): AdvancedSelector {
  return { ...ourAdvanced(spec, [objectsOf(spec)]), Name: `${selectorName(spec)} ${spec.bucket}` };
}

/** The same in both kinds: a trail has one. */
export function printedSelectors(spec: Bucket): readonly [advanced: Selector, basic: Selector] {
  return [advancedSelector(spec), ourBasic([objectsOf(spec)])];
}

function isAdvanced(selector: Selector): selector is AdvancedSelector {
  return 'FieldSelectors' in selector;
}

function objectsIn(selector: Selector): readonly string[] {
  if (!isAdvanced(selector)) return (selector.DataResources ?? []).flatMap(({ Values = [] }) => Values);
  return selector.FieldSelectors.flatMap(({ Field, StartsWith = [] }) => (Field === 'resources.ARN' ? StartsWith : []));
}

/** One of ours with other objects. */
function withObjects(selector: Selector, spec: Bucket, objects: readonly string[]): Selector {
  return isAdvanced(selector) ? ourAdvanced(spec, objects) : { ...selector, ...ourBasic(objects) };
}

/** One of ours without the bucket: none if nothing is left in it. */
function without(selector: Selector, spec: Bucket): readonly Selector[] {
  const objects = objectsIn(selector).filter((object) => object !== objectsOf(spec));
  return objects.length === 0 ? [] : [withObjects(selector, spec, objects)];
}

function isOurs(selector: Selector, spec: Bucket): boolean {
  return isAdvanced(selector) ? selector.Name === selectorName(spec) : writtenSchema.safeParse(selector).success;
}

/** Whether the bucket is in a selector of ours that is as Tally writes it. */
export function recordsBucket(selectors: Selectors, spec: Bucket): boolean {
  return canonicalJson(withSelector(selectors, spec)) === canonicalJson(selectors);
}

/** The selectors with the bucket in the last one of ours, or in a new one behind them; those of others stay equal and in their order. */
export function withSelector({ kind, list }: Selectors, spec: Bucket): Selectors {
  const object = objectsOf(spec);
  const ours = list.filter((each) => isOurs(each, spec));
  const present = ours.find((each) => objectsIn(each).includes(object)) ?? ours.at(-1);
  if (present === undefined) return { kind, list: [...list, kind === 'advanced' ? ourAdvanced(spec, [object]) : ourBasic([object])] };
  const listed = objectsIn(present);
  const objects = listed.includes(object) ? listed : [...listed, object];
  return { kind, list: list.map((each) => (each === present ? withObjects(present, spec, objects) : each)) };
}

/** The selectors without the bucket, or why it stays in them; undefined if they don't have it. Of basic ones the caller knows that Tally put it there. */
export function withoutSelector({ kind, list }: Selectors, spec: Bucket): Selectors | string | undefined {
  const found = list.filter((each) => (kind === 'basic' || isOurs(each, spec)) && objectsIn(each).includes(objectsOf(spec)));
  if (found.length === 0) return undefined;
  const ours = found.filter((each) => isOurs(each, spec));
  if (ours.length === 0) return 'someone else changed it';
  const rest = list.flatMap((each) => (ours.includes(each) ? without(each, spec) : [each]));
  return rest.length === 0 ? 'it is the only one, and a trail must have one' : { kind, list: rest };
}

/** What others have the trail record: of a basic selector of our form all but the bucket's own value, because nothing says whose the others are. */
export function foreignSelectors({ list }: Selectors, spec: Bucket): readonly unknown[] {
  return list.flatMap((each) => (!isOurs(each, spec) ? [each] : isAdvanced(each) ? [] : without(each, spec)));
}

/** The selectors as CloudTrail takes them. */
export function selectorsInput({
  kind,
  list,
}: Selectors): { readonly EventSelectors: unknown } | { readonly AdvancedEventSelectors: unknown } {
  return kind === 'advanced' ? { AdvancedEventSelectors: list } : { EventSelectors: list };
}
