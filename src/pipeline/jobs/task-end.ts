/** What becomes of a task once it was looked at. */
export type TaskEnd =
  /** There is nothing left to do about it. */
  | { readonly kind: 'remove' }
  /** Its like is sent, to be seen after `delayS`, and it goes: however often it must wait, its receives are not counted. */
  | { readonly kind: 'again'; readonly delayS: number }
  /** It goes back as it is: its receives are counted. */
  | { readonly kind: 'back'; readonly delayS: number };

export const REMOVE: TaskEnd = { kind: 'remove' };

/** How long work waits for S3 or the index to get better: the store was asked in vain just now, and live events need it first. */
export const FAULT_WAIT_S = 15;
