/** What S3 says of one version beyond what its event says: HEAD and GetObjectTagging, for enrichment. */
import { GetObjectTaggingCommand, HeadObjectCommand } from '@aws-sdk/client-s3';
import { FaultError } from '../../domain/fault.ts';
import type { ObjectStorage } from '../../pipeline/ports/storage.ts';
import type { Ask } from './s3-ask.ts';
import type { S3Refusal } from './s3-faults.ts';
import { questionText, s3Fault } from './s3-faults.ts';
import { stateOfHead } from './s3-states.ts';

/** Creates the reading of versions. */
export function createS3Details(ask: Ask): Pick<ObjectStorage, 'readVersion' | 'readTags'> {
  return {
    async readVersion(place, { key, versionId, etag }, signal) {
      const { bucket } = place;
      const question = { ...place, operation: 'HeadObject', key };
      const condition = etag === undefined ? {} : { IfMatch: `"${etag}"` };
      const command = new HeadObjectCommand({ Bucket: bucket, Key: key, ...condition, ...versionInput(versionId) });
      const reply = await ask(question, signal, { send: (client, options) => client.send(command, options) });
      if (reply.ok) {
        const state = stateOfHead(reply.output);
        // some that speak S3 know neither conditions nor versions, and answer of what is there
        return isVersion(state.versionId, versionId) && (etag === undefined || state.etag === etag) ? state : 'gone';
      }
      // a HEAD has no body that would tell a missing bucket from a missing key: either way there is nothing to read
      if (GONE.has(reply.answer?.status ?? 0)) return 'gone';
      throw s3Fault(question, reply);
    },
    async readTags(place, { key, versionId }, signal) {
      const { bucket } = place;
      const question = { ...place, operation: 'GetObjectTagging', key };
      const command = new GetObjectTaggingCommand({ Bucket: bucket, Key: key, ...versionInput(versionId) });
      const reply = await ask(question, signal, { send: (client, options) => client.send(command, options) });
      if (reply.ok) {
        const { TagSet, VersionId } = reply.output;
        if (TagSet === undefined) throw new FaultError('object.failed', `${questionText(question)}: the answer holds no tag set`);
        if (VersionId !== undefined && !isVersion(VersionId, versionId)) return 'gone';
        return Object.fromEntries(TagSet.map(({ Key = '', Value = '' }) => [Key, Value]));
      }
      if (GONE.has(reply.answer?.status ?? 0) && !isMissingBucket(reply)) return 'gone';
      throw s3Fault(question, reply);
    },
  };
}

/** No such key or version, a delete marker, or another etag. */
const GONE: ReadonlySet<number> = new Set([404, 405, 412]);

function versionInput(versionId: string | undefined): { readonly VersionId?: string } {
  return versionId === undefined ? {} : { VersionId: versionId };
}

/** Whether the answer is of the version that was asked for; `null` is not named in a bucket that never had versions. */
function isVersion(answered: string | undefined, asked: string | undefined): boolean {
  return asked === undefined || answered === asked || (asked === 'null' && answered === undefined);
}

function isMissingBucket({ error }: S3Refusal): boolean {
  return error instanceof Error && error.name === 'NoSuchBucket';
}
