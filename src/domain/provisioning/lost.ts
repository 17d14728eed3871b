/**
 * How the entries of others are named that changed while Tally wrote. Nothing that is printed writes: a document that was seen
 * is old by the time at which a person pastes it, and a write of it would take what came in between.
 */
import {
  canonicalEntry,
  foreignEntries,
  parseNotification,
  type NotificationConfiguration,
  type NotificationEntry,
} from './notification.ts';
import type { Owner } from './names.ts';

/** The entries of others that were there before a write and are not there now. What an apply took over on request is none of them. */
export function lostEntries(beforeXml: string, now: NotificationConfiguration, owner: Owner): readonly NotificationEntry[] {
  const before = parseNotification(beforeXml);
  if (!before.ok) return [];
  const present = new Set(now.entries.map(canonicalEntry));
  const { installation, registry } = owner;
  return foreignEntries(before.configuration, { installation, registry, adopt: true }).filter(
    (entry) => !present.has(canonicalEntry(entry)),
  );
}

/** An entry as people find it in AWS. */
export function entryText({ id, arn }: Pick<NotificationEntry, 'id' | 'arn'>): string {
  return `${id === '' ? 'an entry without an Id' : id} (${arn})`;
}

/** The difference between two lists of documents of others: what only one of them has, by name. An entry that was changed is in both. */
export function seenText<Item>(
  before: readonly Item[],
  now: readonly Item[],
  of: { readonly same: (item: Item) => string; readonly name: (item: Item) => string },
): string {
  const only = (items: readonly Item[], others: readonly Item[]): string => {
    const known = new Set(others.map(of.same));
    const names = items.filter((item) => !known.has(of.same(item))).map(of.name);
    return names.length === 0 ? 'nothing' : names.join(', ');
  };
  return `seen before and not after: ${only(before, now)}; seen after and not before: ${only(now, before)}`;
}
