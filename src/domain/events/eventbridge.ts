/** S3's EventBridge events. Keys are not encoded. Shape: “EventBridge event message structure” in the S3 user guide. */
import { z } from 'zod';
import { eventBridgeChange } from './names.ts';
import { rawKey } from './keys.ts';
import { idSchema, ignoredRecord, invalidRecord, recordOf, timeOf, valueAt } from './fields.ts';
import type { JsonObject } from './fields.ts';
import type { RecordResult } from './record.ts';

const eventSchema = z.object({
  detail: z.object({
    object: z.object({
      key: z.string().nullish(),
      size: z.int().nonnegative().nullish(),
      etag: idSchema,
      'version-id': idSchema,
      sequencer: idSchema,
    }),
  }),
});

/** Parses an event whose source is `aws.s3`. The record's event name is the event's detail-type. */
export function parseEventBridge(event: JsonObject, detailType: string): RecordResult {
  const bucket = valueAt(event, 'detail', 'bucket', 'name');
  const change = eventBridgeChange(detailType, {
    reason: valueAt(event, 'detail', 'reason'),
    deletionType: valueAt(event, 'detail', 'deletion-type'),
  });
  const facts = { dialect: 'eventbridge', bucket, eventName: detailType, change, eventTimeMs: timeOf(event.time) } as const;
  if (change.kind === 'ignored') return ignoredRecord(facts);
  const parsed = eventSchema.safeParse(event);
  if (!parsed.success) return invalidRecord(parsed.error, bucket);
  const { object } = parsed.data.detail;
  return recordOf({
    ...facts,
    key: rawKey(object.key ?? ''),
    etag: object.etag,
    sizeBytes: object.size,
    versionId: object['version-id'],
    sequencer: object.sequencer,
  });
}
