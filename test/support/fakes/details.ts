/** The versions of the fake S3 as enrichment reads them: conditional HEADs and tags, and what can go wrong with them. */
import type { ObjectState } from '../../../src/ordering/document.ts';
import type { ObjectStorage } from '../../../src/aws/storage.ts';

interface Version {
  readonly versionId?: string;
  readonly state: ObjectState;
}

type Request = 'HEAD' | 'TAGS';

export interface FakeDetails extends Pick<ObjectStorage, 'readVersion' | 'readTags'> {
  /** What enrichment asked so far, as `HEAD bucket/key@version`, in order. */
  readonly asked: string[];
  /** Awaited before such a request is answered; it may throw, or change what is there. */
  readonly hooks: { before?: ((request: Request, key: string, signal: AbortSignal | undefined) => Promise<void>) | undefined };
}

/** What a HEAD says of a state: all but its tags. */
export function headOf<State extends ObjectState>(state: State): State {
  const { tags: _tags, ...said } = { tags: undefined, ...state };
  return said as unknown as State;
}

/** Reads from the versions of a key, the present one last. */
export function createFakeDetails(versionsOf: (bucket: string, key: string) => readonly Version[]): FakeDetails {
  const asked: string[] = [];
  const hooks: FakeDetails['hooks'] = {};

  async function find(
    request: Request,
    at: { readonly bucket: string; readonly key: string; readonly versionId?: string },
    signal?: AbortSignal,
  ) {
    asked.push(`${request} ${at.bucket}/${at.key}${at.versionId === undefined ? '' : `@${at.versionId}`}`);
    await hooks.before?.(request, at.key, signal);
    signal?.throwIfAborted();
    const versions = versionsOf(at.bucket, at.key);
    const state = (at.versionId === undefined ? versions.at(-1) : versions.find(({ versionId }) => versionId === at.versionId))?.state;
    return state?.present === true ? state : undefined;
  }

  return {
    asked,
    hooks,
    readVersion: async ({ bucket }, { key, versionId, etag }, signal) => {
      const state = await find('HEAD', { bucket, key, ...(versionId !== undefined && { versionId }) }, signal);
      if (state === undefined || (etag !== undefined && state.etag !== etag)) return 'gone';
      return headOf(state);
    },
    readTags: async ({ bucket }, { key, versionId }, signal) => {
      const state = await find('TAGS', { bucket, key, ...(versionId !== undefined && { versionId }) }, signal);
      return state === undefined ? 'gone' : (state.tags ?? {});
    },
  };
}
