/** Returns a function that caches only the latest result of `valueOf`, for callers that ask for the same key many times in a row. */
export function cachingLatest<Key extends string | number, Value>(valueOf: (key: Key) => Value): (key: Key) => Value {
  let latest: { readonly key: Key; readonly value: Value } | undefined;
  return (key) => {
    if (latest?.key !== key) latest = { key, value: valueOf(key) };
    return latest.value;
  };
}
