/** Search cursors: the last result's position in its order, and the moment that ages are relative to. */
import { decodeCursor } from '../base/cursor.ts';
import { RequestError } from '../base/request-error.ts';
import { sortFields, type SortField, type SortOrder } from '../store/conditions.rules.ts';

export interface SearchOrder {
  readonly by: SortField;
  readonly order: SortOrder;
}

/** The place of a result. `value` is the size in bytes or the time in milliseconds by which it is sorted. */
export interface SearchPlace {
  readonly value?: number;
  readonly bucket: string;
  readonly key: string;
  /** The moment to which the query's ages are relative. */
  readonly nowMs?: number;
}

/** A cursor's parts. */
export function partsOfPlace({ by, order }: SearchOrder, { value, bucket, key, nowMs }: SearchPlace): readonly string[] {
  return [by, order, value === undefined ? '' : String(value), bucket, key, nowMs === undefined ? '' : String(nowMs)];
}

/** A cursor's place. Throws `request.invalid` for a cursor of another order, and for a text that isn't from an answer. */
export function placeOfCursor(cursor: string, { by, order }: SearchOrder): SearchPlace {
  const [cursorBy, cursorOrder, ...rest] = decodeCursor(cursor, 6);
  const place = sortFields.some((field) => field === cursorBy) ? placeOf(rest) : undefined;
  const isTime = cursorBy === 'last_modified' || cursorBy === 'deleted_at';
  if (place === undefined || (isTime && !isMoment(place.value)) || !isMoment(place.nowMs)) {
    throw new RequestError('request.invalid', 'cursor: must be the `next` value of an earlier page of this list');
  }
  if (by === cursorBy && order === cursorOrder) return place;
  throw new RequestError('request.invalid', 'cursor: belongs to another order; begin again without it, or repeat its sort and order');
}

function placeOf([value, bucket, key, nowMs]: readonly string[]): SearchPlace | undefined {
  if (value === undefined || bucket === undefined || key === undefined || nowMs === undefined) return undefined;
  if (!isNumber(value) || !isNumber(nowMs)) return undefined;
  return { bucket, key, ...(value !== '' && { value: Number(value) }), ...(nowMs !== '' && { nowMs: Number(nowMs) }) };
}

/** The last moment that a Date can be. */
const MOMENT_MAX_MS = 8.64e15;

/** Whether a number is absent, or milliseconds that a Date can be. */
function isMoment(ms: number | undefined): boolean {
  return ms === undefined || Math.abs(ms) <= MOMENT_MAX_MS;
}

/** Whether a part is a whole number or empty. */
function isNumber(part: string): boolean {
  return /^(?:-?\d{1,16})?$/.test(part);
}
