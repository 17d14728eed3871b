/** A moment after which something is abandoned, unless it is abandoned earlier. */
export interface Deadline {
  readonly abandoned: AbortSignal;
  /** To be called when it is done. */
  clear(): void;
}

/**
 * Creates a deadline, which also passes with the first of the signals. (AbortSignal.any() of an AbortSignal.timeout() does
 * not serve: in Node 24 the second can be collected as garbage before its time, and then neither aborts.)
 */
export function createDeadline(timeoutMs: number, signals: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  const abandon = (): void => controller.abort();
  const timer = setTimeout(abandon, timeoutMs);
  for (const signal of signals) signal.addEventListener('abort', abandon, { once: true });
  if (signals.some(({ aborted }) => aborted)) abandon();
  return {
    abandoned: controller.signal,
    clear() {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', abandon);
    },
  };
}
