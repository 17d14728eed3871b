/** Returns the function with a memory of its latest result, for callers that need the same result many times in a row. */
export function cachingLatest<Key extends string | number>(textOf: (key: Key) => string): (key: Key) => string {
  let latestKey: Key | undefined;
  let latest = '';
  return (key) => {
    if (key !== latestKey) {
      latest = textOf(key);
      latestKey = key;
    }
    return latest;
  };
}
