/** Returns the function with a memory of its latest result, for callers that need the same result many times in a row. */
export function cachingLatest<Key extends string | number, Value>(valueOf: (key: Key) => Value): (key: Key) => Value {
  let latest: { readonly key: Key; readonly value: Value } | undefined;
  return (key) => {
    if (latest?.key !== key) latest = { key, value: valueOf(key) };
    return latest.value;
  };
}
