/** Reads the fields of one version that events do not contain, by HEAD and GetObjectTagging, for enrichment. */
import { GetObjectTaggingCommand } from '@aws-sdk/client-s3';
import { FaultError } from '../../domain/fault.ts';
import type { ObjectStorage } from '../../pipeline/ports/storage.ts';
import type { Ask } from './s3-ask.ts';
import type { S3Refusal } from './s3-faults.ts';
import { questionText, s3Fault } from './s3-faults.ts';
import { ownerInput } from './s3-owner.ts';
import { sendHead } from './s3-head.ts';
import { stateOfHead } from './s3-states.ts';

/** Creates the reader of versions. */
export function createS3Details(ask: Ask): Pick<ObjectStorage, 'readVersion' | 'readTags'> {
  return {
    async readVersion(location, { key, versionId, etag }, signal) {
      const { bucket } = location;
      const question = { ...location, operation: 'HeadObject', key };
      const condition = etag === undefined ? {} : { IfMatch: `"${etag}"` };
      const input = {
        Bucket: bucket,
        Key: key,
        ...condition,
        ...versionInput(versionId),
        ...ownerInput(location),
      };
      const reply = await ask(question, signal, { send: (client, options, attempt) => sendHead(client, input, { ...options, attempt }) });
      if (reply.ok) {
        const state = stateOfHead(reply.output);
        // some implementations of S3 support neither conditions nor versions, and answer with the current object
        return isVersion(state.versionId, versionId) && (etag === undefined || state.etag === etag) ? state : 'gone';
      }
      // an answer to HEAD has no body that would distinguish a missing bucket from a missing key; in both cases there is nothing to read
      if (GONE.has(reply.answer?.status ?? 0)) return 'gone';
      throw s3Fault(question, reply);
    },
    async readTags(location, { key, versionId }, signal) {
      const { bucket } = location;
      const question = { ...location, operation: 'GetObjectTagging', key };
      const command = new GetObjectTaggingCommand({ Bucket: bucket, Key: key, ...versionInput(versionId), ...ownerInput(location) });
      const reply = await ask(question, signal, { send: (client, options) => client.send(command, options) });
      if (reply.ok) {
        const { TagSet, VersionId } = reply.output;
        if (TagSet === undefined) throw new FaultError('object.failed', `${questionText(question)}: the answer contains no tag set`);
        if (VersionId !== undefined && !isVersion(VersionId, versionId)) return 'gone';
        return Object.fromEntries(TagSet.map(({ Key = '', Value = '' }) => [Key, Value]));
      }
      if (GONE.has(reply.answer?.status ?? 0) && !isMissingBucket(reply)) return 'gone';
      throw s3Fault(question, reply);
    },
  };
}

/** The statuses for a missing key or version, a delete marker, or another etag. */
const GONE: ReadonlySet<number> = new Set([404, 405, 412]);

function versionInput(versionId: string | undefined): { readonly VersionId?: string } {
  return versionId === undefined ? {} : { VersionId: versionId };
}

/** Whether the answer is about the requested version. In a bucket that was never versioned, S3 does not return the version id `null`. */
function isVersion(answered: string | undefined, asked: string | undefined): boolean {
  return asked === undefined || answered === asked || (asked === 'null' && answered === undefined);
}

function isMissingBucket({ error }: S3Refusal): boolean {
  return error instanceof Error && error.name === 'NoSuchBucket';
}
