/** An S3 on loopback that answers as a test says, and the adapters that ask it. All of it ends with the test. */
import { onTestFinished } from 'vitest';
import { createS3Lifecycle, createS3Storage } from '../../src/aws/s3-storage.ts';
import { createS3Listing } from '../../src/aws/s3-listing.ts';
import { createTestAws } from '../support/servers/aws.ts';
import { startScripted, type Script, type ScriptedRequest } from '../support/servers/scripted.ts';

/** Of this very second: the SDK repeats what a server refuses whose clock is minutes away from its own. */
const DATE = new Date().toUTCString();
export const DATE_MS = Date.parse(DATE);
export const target = { bucket: 'some-bucket', region: 'eu-west-1' };

/** Answers of something else than S3 have no request ID. */
export const foreign = { 'x-amz-request-id': undefined };
/** What a HEAD of an object answers. */
export const present = { etag: '"abc"', 'content-length': '5', 'last-modified': DATE };

export interface S3Request extends ScriptedRequest {
  readonly url: URL;
  /** Whether it is about the bucket itself. */
  readonly isBucket: boolean;
}

export const errorBody = (code: string): string => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>as scripted</Message></Error>`;
/** Of a key as it is encoded. */
export const entry = (key: string, more = ''): string =>
  `<Contents><Key>${key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;abc&quot;</ETag><Size>7</Size>${more}</Contents>`;
export const listed = { present: true, etag: 'abc', sizeBytes: 7, lastModifiedMs: Date.UTC(2026, 0, 2, 3, 4, 5) };
export const lastPage = '<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>';
export const page = (contents: string, { head = lastPage, name = target.bucket, prefix = '' } = {}): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${name}</Name><Prefix>${prefix}</Prefix>${head}${contents}</ListBucketResult>`;

/** The clock of the adapters moves only when the test moves it, and `takes` ms with each answer. */
export async function scriptedS3(script: Script<S3Request>, { timeoutMs = 60_000, takesMs = 0 } = {}) {
  let nowMs = 1_000;
  const server = await startScripted(async (request) => {
    nowMs += takesMs;
    const url = new URL(request.path, 'http://s3');
    const answer = await script({ ...request, url, isBucket: /^\/[^/]*\/?$/.test(url.pathname) });
    if (answer === undefined) return undefined;
    return { ...answer, headers: { date: DATE, 'x-amz-request-id': 'TESTREQUEST00001', ...answer.headers } };
  });
  const aws = createTestAws(server.url);
  onTestFinished(() => aws.dispose());
  const { s3For: clientFor } = aws.clients({ s3TimeoutMs: timeoutMs });
  const clock = { monotonicMs: () => nowMs };
  return {
    ...server,
    aws,
    storage: createS3Storage({ clientFor, region: 'us-east-1', clock }),
    listing: createS3Listing({ clientFor, clock }),
    lifecycle: createS3Lifecycle({ clientFor, clock }),
    /** The requests so far, by method and path, which it forgets. */
    taken: (): readonly string[] => server.asked.splice(0).map(({ method, path }) => `${method} ${path}`),
    pass: (ms: number): void => {
      nowMs += ms;
    },
  };
}
