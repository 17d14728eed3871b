/**
 * An audit trail's selectors, which decide which data events it records. A write replaces all of them, so Tally adds its own to the
 * existing ones, in the trail's kind. An advanced selector's name shows its owner. Basic ones have no names: Tally's have exactly the form
 * that Tally writes, and a bucket's record says whether Tally added that bucket's value.
 * https://docs.aws.amazon.com/awscloudtrail/latest/userguide/logging-data-events-with-cloudtrail.html
 */
import { z } from 'zod';
import { FaultError } from '../base/fault.ts';
import { shortRegistry } from './names.rules.ts';
import { canonicalJson } from './policy.rules.ts';

/** CloudTrail returns an empty list for each operator that a condition lacks, but refuses such lists in a write. */
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

/** A trail's selectors, all of one kind. */
export interface Selectors {
  readonly kind: 'basic' | 'advanced';
  readonly list: readonly Selector[];
}

const answerSchema = z.object({
  EventSelectors: z.array(basicSchema).default([]),
  AdvancedEventSelectors: z.array(advancedSchema).default([]),
});

/** Reads what CloudTrail answers. Throws `connect.unavailable` if it has another form: a write replaces all selectors. */
export function parseSelectors(answer: unknown): Selectors {
  const { data } = answerSchema.safeParse(answer);
  if (data === undefined) throw new FaultError('connect.unavailable', 'GetEventSelectors: the answer has selectors of an unknown form');
  const { AdvancedEventSelectors: advanced, EventSelectors: basic } = data;
  return advanced.length > 0 ? { kind: 'advanced', list: advanced } : { kind: 'basic', list: basic };
}

const OBJECTS = 'AWS::S3::Object';

/** A basic selector as Tally writes it. CloudTrail adds an empty list to its answers. */
const writtenSchema = z.strictObject({
  ReadWriteType: z.literal('WriteOnly'),
  IncludeManagementEvents: z.literal(false),
  DataResources: z.tuple([z.strictObject({ Type: z.literal(OBJECTS), Values: z.array(z.string()).min(1) })]),
  ExcludeManagementEventSources: z.tuple([]).optional(),
});

/** The routed source's five operations. PostObject and RenameObject are not among them. */
export const routedOperations = ['PutObject', 'CopyObject', 'CompleteMultipartUpload', 'DeleteObject', 'DeleteObjects'] as const;

interface Bucket {
  readonly bucket: string;
  readonly partition: string;
  readonly registry: string;
}

/** The beginning of the ARNs of the bucket's objects. Without the slash, it would select other buckets too. */
function objectsOf({ bucket, partition }: Omit<Bucket, 'registry'>): string {
  return `arn:${partition}:s3:::${bucket}/`;
}

/** The name of Tally's advanced selector. It contains the registry's id, because several registries may share a trail. */
export function selectorName(spec: Pick<Bucket, 'registry'>): string {
  return `tally ${shortRegistry(spec)}`;
}

/** Tally's advanced selector. All buckets share it, because one each would exhaust the trail's quota of values. */
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

/** Tally's basic selector. All buckets share it, because a trail has five. */
function ourBasic(objects: readonly string[]): BasicSelector {
  return { ReadWriteType: 'WriteOnly', IncludeManagementEvents: false, DataResources: [{ Type: OBJECTS, Values: [...objects] }] };
}

/** A selector for this bucket alone, to print for trails that Tally may not change. */
export function advancedSelector(spec: Bucket): AdvancedSelector {
  return { ...ourAdvanced(spec, [objectsOf(spec)]), Name: `${selectorName(spec)} ${spec.bucket}` };
}

/** The same in both kinds, for the trail's owner to choose. */
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

/** One of Tally's selectors with other objects. */
function withObjects(selector: Selector, spec: Bucket, objects: readonly string[]): Selector {
  return isAdvanced(selector) ? ourAdvanced(spec, objects) : { ...selector, ...ourBasic(objects) };
}

/** One of Tally's selectors without the bucket; none if it was the only one. */
function without(selector: Selector, spec: Bucket): readonly Selector[] {
  const objects = objectsIn(selector).filter((object) => object !== objectsOf(spec));
  return objects.length === 0 ? [] : [withObjects(selector, spec, objects)];
}

function isOurs(selector: Selector, spec: Bucket): boolean {
  return isAdvanced(selector) ? selector.Name === selectorName(spec) : writtenSchema.safeParse(selector).success;
}

/** Whether one of Tally's selectors contains the bucket, exactly as Tally writes it. */
export function recordsBucket(selectors: Selectors, spec: Bucket): boolean {
  return canonicalJson(withSelector(selectors, spec)) === canonicalJson(selectors);
}

/** The selectors with the bucket in Tally's last one, or in a new last one. Other owners' selectors keep their content and order. */
export function withSelector({ kind, list }: Selectors, spec: Bucket): Selectors {
  const object = objectsOf(spec);
  const ours = list.filter((each) => isOurs(each, spec));
  const present = ours.find((each) => objectsIn(each).includes(object)) ?? ours.at(-1);
  if (present === undefined) return { kind, list: [...list, kind === 'advanced' ? ourAdvanced(spec, [object]) : ourBasic([object])] };
  const listed = objectsIn(present);
  const objects = listed.includes(object) ? listed : [...listed, object];
  return { kind, list: list.map((each) => (each === present ? withObjects(present, spec, objects) : each)) };
}

/** The selectors without the bucket, or why it stays; undefined if they don't contain it. For basic ones, the caller knows that Tally added it. */
export function withoutSelector({ kind, list }: Selectors, spec: Bucket): Selectors | string | undefined {
  const found = list.filter((each) => (kind === 'basic' || isOurs(each, spec)) && objectsIn(each).includes(objectsOf(spec)));
  if (found.length === 0) return undefined;
  const ours = found.filter((each) => isOurs(each, spec));
  if (ours.length === 0) return 'someone else changed it';
  const rest = list.flatMap((each) => (ours.includes(each) ? without(each, spec) : [each]));
  return rest.length === 0 ? 'it is the only one, and a trail must have one' : { kind, list: rest };
}

/** What the trail records for others. In a basic selector of Tally's form, all values but this bucket's count, because nothing shows their owner. */
export function foreignSelectors({ list }: Selectors, spec: Bucket): readonly unknown[] {
  return list.flatMap((each) => (!isOurs(each, spec) ? [each] : isAdvanced(each) ? [] : without(each, spec)));
}

/** The selectors as CloudTrail accepts them. */
export function selectorsInput({
  kind,
  list,
}: Selectors): { readonly EventSelectors: unknown } | { readonly AdvancedEventSelectors: unknown } {
  return kind === 'advanced' ? { AdvancedEventSelectors: list } : { EventSelectors: list };
}
