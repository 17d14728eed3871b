/** The ports of enrichment: what it asks of S3 beyond a look, and what it tells. The conventions of ports.ts hold. */
import type { PresentState } from '../domain/document.ts';
import type { EnrichResult, EnrichStep } from '../domain/enrichment.ts';

/** One version of an object. */
export interface VersionName {
  readonly key: string;
  /** Absent: the present object. */
  readonly versionId?: string;
  /** It must have this etag. */
  readonly etag?: string;
}

export interface VersionDetails {
  /**
   * What S3 says of this version, by HEAD: by its version id where there is one, else by If-Match on its etag. `gone` when
   * S3 has it no longer (404, 405, 412), or what it answered has another etag. Throws `object.denied`, `object.failed`,
   * `bucket.missing`, `s3.unavailable`, `s3.throttled`, `s3.credentials`.
   */
  readVersion(
    place: { readonly bucket: string; readonly region: string },
    version: VersionName,
    signal?: AbortSignal,
  ): Promise<PresentState | 'gone'>;
  /** The tags of this version, else of the object that is there now, by GetObjectTagging. Its etag cannot be asked for. `gone` and faults as above. */
  readTags(
    place: { readonly bucket: string; readonly region: string },
    version: Pick<VersionName, 'key' | 'versionId'>,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>> | 'gone'>;
}

/** How one step of enriching one live document went. */
export interface EnrichFact {
  readonly bucket: string;
  readonly enrich: EnrichStep;
  readonly result: EnrichResult;
  /** Of a fault: what happened. May hold the key. */
  readonly reason?: string;
}
