/**
 * The overlap of notification configurations, which S3 refuses: two of one bucket, of whatever destinations, may not share an
 * event type for any key. Prefixes overlap if one begins with the other, suffixes if one ends with the other.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html
 */
import type { FilterRule, NotificationConfiguration, NotificationEntry } from './notification.rules.ts';
import type { ConnectionSpec } from './connection.rules.ts';

type Filtered = Pick<NotificationEntry, 'events' | 'filter'>;

/** Whether S3 refuses two such configurations beside each other. */
export function overlap(a: Filtered, b: Filtered): boolean {
  const shareEvents = a.events.some((one) => b.events.some((other) => eventsMeet(one, other)));
  if (!shareEvents) return false;
  const [prefixA, prefixB] = [valueOf(a.filter, 'prefix'), valueOf(b.filter, 'prefix')];
  const [suffixA, suffixB] = [valueOf(a.filter, 'suffix'), valueOf(b.filter, 'suffix')];
  const prefixesMeet = prefixA.startsWith(prefixB) || prefixB.startsWith(prefixA);
  return prefixesMeet && (suffixA.endsWith(suffixB) || suffixB.endsWith(suffixA));
}

/** Whether some event matches both names, of which each may end in a wildcard. */
function eventsMeet(a: string, b: string): boolean {
  return covers(a, b) || covers(b, a);
}

/** Whether every event that matches `event` matches `pattern`. */
function covers(pattern: string, event: string): boolean {
  const [name, other] = [pattern.toLowerCase(), event.toLowerCase()];
  return name.endsWith('*') ? other.startsWith(name.slice(0, -1)) : name === other;
}

/** The value of a rule as keys have it; empty if there is none. */
function valueOf(filter: readonly FilterRule[], name: 'prefix' | 'suffix'): string {
  const found = filter.find((rule) => rule.name.toLowerCase() === name)?.value ?? '';
  return formDecoded(found);
}

/** S3 stores filter values in the form encoding of its events. A value that is not encoded means itself. */
function formDecoded(value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    return value;
  }
}

const FAMILIES = ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'] as const;

/** The families of events, created and removed, that a topic or a queue does not get for every key of the bucket. */
export function missingFamilies(
  { entries }: NotificationConfiguration,
  destination: string,
  as: 'topic' | 'queue' = 'topic',
): readonly string[] {
  const unfiltered = entries.filter(({ kind, arn, filter }) => kind === as && arn === destination && filter.length === 0);
  return FAMILIES.filter((family) => !unfiltered.some(({ events }) => events.some((event) => covers(event, family))));
}

/** A topic that gets all created and removed events already: the best way round a conflict. */
export function completeTopic(configuration: NotificationConfiguration): string | undefined {
  const topics = new Set(configuration.entries.filter(({ kind }) => kind === 'topic').map(({ arn }) => arn));
  return [...topics].find((arn) => !arn.endsWith('.fifo') && missingFamilies(configuration, arn).length === 0);
}

/** Whether the configuration sends every created and removed event to the topic, or straight to the queue, of a bucket that a person wired. */
export function passesBoth({ source, topicArn, queueArn }: ConnectionSpec, configuration: NotificationConfiguration): boolean {
  if (source !== 'topic' && source !== 'notification') return false;
  const missing = topicArn === undefined ? missingFamilies(configuration, queueArn, 'queue') : missingFamilies(configuration, topicArn);
  return missing.length === 0;
}
