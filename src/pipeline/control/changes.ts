/** Which changes of a bucket a request is about. */

/** Default: a day is what people look for when something changed. */
const SINCE_MS = 86_400_000;

interface ChangesRequest {
  readonly prefix?: string;
  readonly since?: string;
  readonly limit: number;
}

export function changesPage({ prefix = '', since, limit }: ChangesRequest, nowMs: number) {
  return { prefix, sinceMs: since === undefined ? nowMs - SINCE_MS : Date.parse(since), limit };
}
