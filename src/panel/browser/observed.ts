/** Changing values that several parts of the page show. */
import { useEffect, useState } from 'preact/hooks';

export interface Observed<Value> {
  read(): Value;
  set(value: Value): void;
  /** Calls the function after each change, until the returned function is called. */
  watch(changed: () => void): () => void;
}

export function observed<Value>(first: Value): Observed<Value> {
  let current = first;
  const watchers = new Set<() => void>();
  return {
    read: () => current,
    set(value) {
      if (Object.is(value, current)) return;
      current = value;
      for (const changed of watchers) changed();
    },
    watch(changed) {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
  };
}

/** The value. The component is drawn again after each change. */
export function useObserved<Value>(value: Observed<Value>): Value {
  const [, draw] = useState({});
  useEffect(() => value.watch(() => draw({})), [value]);
  return value.read();
}
