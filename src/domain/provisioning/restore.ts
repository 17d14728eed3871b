/** What a write of the notification configuration may have taken from others, and the command that gives it back. */
import {
  canonicalEntry,
  foreignEntries,
  parseNotification,
  sdkConfiguration,
  type NotificationConfiguration,
  type NotificationEntry,
} from './notification.ts';

/** The command that writes the configuration. */
export function restoreCommand(
  at: { readonly bucket: string; readonly account: string },
  configuration: NotificationConfiguration,
): string {
  const document = JSON.stringify(sdkConfiguration(configuration)).replaceAll("'", String.raw`'\''`);
  return `aws s3api put-bucket-notification-configuration --bucket ${at.bucket} --expected-bucket-owner ${at.account} --notification-configuration '${document}'`;
}

/** The entries of others that were there before a write and are not there now. What an apply took over on request is none of them. */
export function lostEntries(beforeXml: string, now: NotificationConfiguration, installation: string): readonly NotificationEntry[] {
  const before = parseNotification(beforeXml);
  if (!before.ok) return [];
  const present = new Set(now.entries.map(canonicalEntry));
  return foreignEntries(before.configuration, { installation, adopt: true }).filter((entry) => !present.has(canonicalEntry(entry)));
}
