/**
 * A bucket's notification configuration: one document, which every PUT replaces. Tally reads S3's own XML instead of the SDK's answer,
 * because an SDK drops what it does not know, and writing the rest back would delete that.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html
 */
import type { ConnectionSpec } from '../records/bucket.ts';
import { markOf, type Owner } from './names.rules.ts';

const destinationKinds = ['topic', 'queue', 'function'] as const;
type DestinationKind = (typeof destinationKinds)[number];

export interface FilterRule {
  /** S3 returns `Prefix` and takes `prefix`; here it is in lower case. */
  readonly name: string;
  /** Form-encoded, as it is stored. */
  readonly value: string;
}

/** One configuration of the document. */
export interface NotificationEntry {
  readonly kind: DestinationKind;
  readonly id: string;
  readonly arn: string;
  readonly events: readonly string[];
  readonly filter: readonly FilterRule[];
}

export interface NotificationConfiguration {
  readonly entries: readonly NotificationEntry[];
  /** Whether all events of the bucket go to EventBridge too. */
  readonly eventBridge: boolean;
}

export type NotificationResult =
  | { readonly ok: true; readonly configuration: NotificationConfiguration }
  /** It contains something that this version does not know and could not write back. */
  | { readonly ok: false; readonly reason: string };

/** S3's element names for the kinds and their destinations. S3 calls a function CloudFunction, unlike the SDKs. */
const KINDS: ReadonlyMap<string, readonly [kind: DestinationKind, destination: string]> = new Map([
  ['TopicConfiguration', ['topic', 'Topic']],
  ['QueueConfiguration', ['queue', 'Queue']],
  ['CloudFunctionConfiguration', ['function', 'CloudFunction']],
]);

/** Reads the document, or refuses all of it if it contains anything unknown. */
export function parseNotification(xml: string): NotificationResult {
  const parsed = parseXml(xml);
  if (!parsed.ok) return parsed;
  try {
    return { ok: true, configuration: configurationOf(parsed.root) };
  } catch (error) {
    if (error instanceof UnknownPartError) return { ok: false, reason: error.message };
    throw error;
  }
}

class UnknownPartError extends Error {}

function configurationOf({ name, children }: Element): NotificationConfiguration {
  if (name !== 'NotificationConfiguration') throw new UnknownPartError(`the root is <${name}>`);
  const entries: NotificationEntry[] = [];
  let eventBridge = false;
  for (const child of children) {
    const known = KINDS.get(child.name);
    if (known !== undefined) entries.push(entryOf(child, ...known));
    else if (child.name === 'EventBridgeConfiguration' && isEmpty(child)) eventBridge = true;
    else throw new UnknownPartError(`<${child.name}> is not known, or not in this form`);
  }
  return { entries, eventBridge };
}

function entryOf(element: Element, kind: DestinationKind, destination: string): NotificationEntry {
  const of = (name: string): readonly Element[] => element.children.filter((child) => child.name === name);
  const known = new Set(['Event', 'Filter', 'Id', destination]);
  const stranger = element.children.find(({ name }) => !known.has(name));
  const isTwice = ['Filter', 'Id', destination].some((name) => of(name).length > 1);
  if (stranger !== undefined || isTwice) {
    throw new UnknownPartError(`<${stranger?.name ?? 'a part'}> in <${element.name}> is not known, or is there twice`);
  }
  const [id, arn, filter] = [of('Id')[0], of(destination)[0], of('Filter')[0]];
  const events = of('Event').map(textOf);
  if (arn === undefined || events.length === 0) throw new UnknownPartError(`<${element.name}> has no <${destination}> or no <Event>`);
  return { kind, id: id === undefined ? '' : textOf(id), arn: textOf(arn), events, filter: filter === undefined ? [] : filterOf(filter) };
}

function filterOf(element: Element): readonly FilterRule[] {
  const rules = element.children.flatMap((child) => {
    if (child.name !== 'S3Key') throw new UnknownPartError(`<${child.name}> in <Filter> is not known`);
    return child.children.map(ruleOf);
  });
  if (new Set(rules.map(({ name }) => name)).size !== rules.length) throw new UnknownPartError('<Filter> has two rules of one name');
  return rules.filter(({ value }) => value !== '');
}

function ruleOf(element: Element): FilterRule {
  const fields = new Map(element.children.map((child) => [child.name, textOf(child)]));
  const name = fields.get('Name')?.toLowerCase();
  const isKnown = element.name === 'FilterRule' && fields.size === 2 && element.children.length === 2 && fields.has('Value');
  if (!isKnown || (name !== 'prefix' && name !== 'suffix')) throw new UnknownPartError('a rule in <Filter> is not known');
  return { name, value: fields.get('Value') ?? '' };
}

function textOf({ name, children, text }: Element): string {
  if (children.length > 0) throw new UnknownPartError(`<${name}> has elements`);
  return text;
}

function isEmpty({ children, text }: Element): boolean {
  return children.length === 0 && text.trim() === '';
}

/** A text that is equal for two entries if and only if they mean the same. */
export function canonicalEntry({ kind, id, arn, events, filter }: NotificationEntry): string {
  const rules = filter.map(({ name, value }) => `${name}=${value}`).sort();
  return JSON.stringify([kind, arn, [...new Set(events)].sort(), rules, id]);
}

/** Whether two lists of entries mean the same, in whatever order. */
export function sameEntries(a: readonly NotificationEntry[], b: readonly NotificationEntry[]): boolean {
  const [first, second] = [a, b].map((entries) => entries.map(canonicalEntry).sort());
  return JSON.stringify(first) === JSON.stringify(second);
}

/** The entries that do not have this Id. */
export function entriesWithout({ entries }: NotificationConfiguration, id: string): readonly NotificationEntry[] {
  return entries.filter((entry) => entry.id !== id);
}

/** The entries that are not this registry's. Tally leaves them unchanged. */
export function foreignEntries(configuration: NotificationConfiguration, owner: Owner): readonly NotificationEntry[] {
  return entriesWithout(configuration, markOf(owner));
}

/** The document as the SDKs and the AWS CLI accept it, with everything that {@link parseNotification} accepts. */
export function sdkConfiguration({ entries, eventBridge }: NotificationConfiguration) {
  const of = (kind: DestinationKind): readonly NotificationEntry[] => entries.filter((entry) => entry.kind === kind);
  const [topics, queues, functions] = [of('topic'), of('queue'), of('function')];
  return {
    ...(topics.length > 0 && { TopicConfigurations: topics.map((entry) => ({ ...sdkEntry(entry), TopicArn: entry.arn })) }),
    ...(queues.length > 0 && { QueueConfigurations: queues.map((entry) => ({ ...sdkEntry(entry), QueueArn: entry.arn })) }),
    ...(functions.length > 0 && {
      LambdaFunctionConfigurations: functions.map((entry) => ({ ...sdkEntry(entry), LambdaFunctionArn: entry.arn })),
    }),
    ...(eventBridge && { EventBridgeConfiguration: {} }),
  };
}

function sdkEntry({ id, events, filter }: NotificationEntry) {
  return {
    ...(id !== '' && { Id: id }),
    Events: [...events],
    ...(filter.length > 0 && { Filter: { Key: { FilterRules: filter.map(({ name, value }) => ({ Name: name, Value: value })) } } }),
  };
}

// ── overlaps, which S3 refuses: two entries of one bucket, of whatever destinations, may not share an event type for any key. Prefixes
// overlap if one begins with the other, suffixes if one ends with the other.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html ──────────────────────────────────

type Filtered = Pick<NotificationEntry, 'events' | 'filter'>;

/** Whether S3 refuses to have both configurations on one bucket. */
export function overlap(a: Filtered, b: Filtered): boolean {
  const shareEvents = a.events.some((one) => b.events.some((other) => eventsMeet(one, other)));
  if (!shareEvents) return false;
  const [prefixA, prefixB] = [valueOf(a.filter, 'prefix'), valueOf(b.filter, 'prefix')];
  const [suffixA, suffixB] = [valueOf(a.filter, 'suffix'), valueOf(b.filter, 'suffix')];
  const prefixesMeet = prefixA.startsWith(prefixB) || prefixB.startsWith(prefixA);
  return prefixesMeet && (suffixA.endsWith(suffixB) || suffixB.endsWith(suffixA));
}

/** Whether some event matches both names, each of which may end in a wildcard. */
function eventsMeet(a: string, b: string): boolean {
  return covers(a, b) || covers(b, a);
}

/** Whether every event that matches `event` matches `pattern`. */
function covers(pattern: string, event: string): boolean {
  const [name, other] = [pattern.toLowerCase(), event.toLowerCase()];
  return name.endsWith('*') ? other.startsWith(name.slice(0, -1)) : name === other;
}

/** A rule's value, decoded like a key; empty if there is no such rule. */
function valueOf(filter: readonly FilterRule[], name: 'prefix' | 'suffix'): string {
  const found = filter.find((rule) => rule.name.toLowerCase() === name)?.value ?? '';
  return formDecoded(found);
}

/** S3 stores filter values form-encoded, like its events' keys. An unencoded value means itself. */
function formDecoded(value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    return value;
  }
}

const FAMILIES = ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'] as const;

/** The event families, created and removed, that a topic or queue does not get for every key of the bucket. */
export function missingFamilies(
  { entries }: NotificationConfiguration,
  destination: string,
  as: 'topic' | 'queue' = 'topic',
): readonly string[] {
  const unfiltered = entries.filter(({ kind, arn, filter }) => kind === as && arn === destination && filter.length === 0);
  return FAMILIES.filter((family) => !unfiltered.some(({ events }) => events.some((event) => covers(event, family))));
}

/** A topic that already gets all created and removed events: the best way around a conflict. */
export function completeTopic(configuration: NotificationConfiguration): string | undefined {
  const topics = new Set(configuration.entries.filter(({ kind }) => kind === 'topic').map(({ arn }) => arn));
  return [...topics].find((arn) => !arn.endsWith('.fifo') && missingFamilies(configuration, arn).length === 0);
}

/** Whether the configuration sends every created and removed event to the connection's topic, or straight to its queue if it has none. */
export function passesBoth({ source, topicArn, queueArn }: ConnectionSpec, configuration: NotificationConfiguration): boolean {
  if (source !== 'topic' && source !== 'notification') return false;
  const missing = topicArn === undefined ? missingFamilies(configuration, queueArn, 'queue') : missingFamilies(configuration, topicArn);
  return missing.length === 0;
}

/**
 * A strict reader of small XML documents. It refuses what it would otherwise lose: attributes other than namespaces, comments, CDATA,
 * processing instructions and document types.
 */

interface Element {
  readonly name: string;
  readonly children: readonly Element[];
  /** The text between the tags. Only elements without children have one. */
  readonly text: string;
}

type XmlResult = { readonly ok: true; readonly root: Element } | { readonly ok: false; readonly reason: string };

/** 100 configurations of 10 KB. S3's own documents are far smaller. */
const LENGTH_MAX = 1_000_000;
/** Twice as deep as any document that is read here. */
const DEPTH_MAX = 10;

interface Open {
  readonly name: string;
  readonly children: Element[];
  text: string;
}

const DECLARATION = /^\uFEFF?\s*(?:<\?xml[^>?]*\?>)?\s*/;
const TOKEN = /<(\/?)([A-Za-z][\w.-]*)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;
const ATTRIBUTE = /([\w:.-]+)\s*=/g;

/** Reads the document. */
function parseXml(text: string): XmlResult {
  if (text.length > LENGTH_MAX) return { ok: false, reason: `the document is longer than ${LENGTH_MAX} characters` };
  const top: Open = { name: '', children: [], text: '' };
  const open: Open[] = [top];
  const mistake = takeAll(open, text);
  if (mistake !== undefined) return { ok: false, reason: mistake };
  const [root, ...more] = top.children;
  if (open.length !== 1 || root === undefined || more.length > 0) return { ok: false, reason: 'the document has not exactly one root' };
  return top.text.trim() === '' ? { ok: true, root } : { ok: false, reason: 'there is text outside of the root' };
}

/** Takes all tokens, and returns the first mistake. */
function takeAll(open: Open[], text: string): string | undefined {
  TOKEN.lastIndex = DECLARATION.exec(text)?.[0].length ?? 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const token = TOKEN.exec(text);
    const mistake = token === null ? `what follows character ${at} is not an element` : take(open, token);
    if (mistake !== undefined) return mistake;
  }
  return undefined;
}

/** Takes one token, and returns its mistake. */
function take(open: Open[], [, slash, name, attributes = '', empty, text]: RegExpExecArray): string | undefined {
  const parent = open.at(-1);
  if (parent === undefined) return 'an element is closed twice';
  if (name === undefined) return takeText(parent, text ?? '');
  const unknown = [...attributes.matchAll(ATTRIBUTE)].map(([, found = '']) => found).find((found) => !/^xmlns(:|$)/.test(found));
  if (unknown !== undefined) return `<${name}> has the unknown attribute ${unknown}`;
  if (slash === '/') return close(open, name);
  open.push({ name, children: [], text: '' });
  if (open.length > DEPTH_MAX) return 'the elements are nested too deeply';
  return empty === '/' ? close(open, name) : undefined;
}

function takeText(parent: Open, text: string): string | undefined {
  const decoded = decodeEntities(text);
  if (decoded === undefined) return `<${parent.name}> has an unknown entity`;
  parent.text += decoded;
  return undefined;
}

function close(open: Open[], name: string): string | undefined {
  const closed = open.pop();
  const parent = open.at(-1);
  if (closed === undefined || parent === undefined || closed.name !== name) return `</${name}> closes no element`;
  if (closed.children.length > 0 && closed.text.trim() !== '') return `<${name}> has both text and elements`;
  parent.children.push(closed);
  return undefined;
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['lt', '<'],
  ['gt', '>'],
  ['amp', '&'],
  ['quot', '"'],
  ['apos', "'"],
]);

/** Undefined if the text has an entity that XML does not define. */
function decodeEntities(text: string): string | undefined {
  let isKnown = true;
  const decoded = text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w+));|&/g, (_, decimal?: string, hex?: string, name?: string) => {
    const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
    const found = name === undefined ? (point <= 0x10_ff_ff ? String.fromCodePoint(point) : undefined) : ENTITIES.get(name);
    if (found === undefined) isKnown = false;
    return found ?? '';
  });
  return isKnown ? decoded : undefined;
}
