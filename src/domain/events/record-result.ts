import type { Fault } from '../fault.ts';
import type { ChangeRecord } from './record.ts';

/** What became of one record of a message. `bucket` where it is known, for the loss gap of a record that is rejected. */
export type RecordResult =
  | { readonly ok: true; readonly record: ChangeRecord }
  | { readonly ok: false; readonly fault: Fault; readonly bucket?: string };
