import type { Fault } from '../fault.ts';
import type { ChangeRecord, Dialect } from './record.ts';

/** What became of one record of a message. `bucket` where it is known, for the loss gap of a record that is rejected; `dialect` where it could be told. */
export type RecordResult =
  | { readonly ok: true; readonly record: ChangeRecord }
  | { readonly ok: false; readonly fault: Fault; readonly bucket?: string; readonly dialect?: Dialect };
