/** The plan as a script for the AWS CLI, for people who may not let Tally change AWS. */
import { call, type RequestTo } from './api.ts';
import { Lines } from './findings.tsx';
import { useLoaded } from './load.ts';
import { CopyButton, Dialog, Shown } from './parts.tsx';

interface ScriptProps {
  readonly bucket: string;
  readonly wish: NonNullable<RequestTo<'GET /v1/buckets/{bucket}/script'>['query']>;
  readonly onClose: () => void;
}

export function ScriptDialog({ bucket, wish, onClose }: ScriptProps) {
  const loaded = useLoaded(`script ${bucket} ${JSON.stringify(wish)}`, (signal) =>
    call('GET /v1/buckets/{bucket}/script', { params: { bucket }, query: wish }, signal),
  );
  return (
    <Dialog title={`Script for ${bucket}`} onClose={onClose}>
      <p>
        For bash, the AWS CLI 2 and jq, and a person who may change AWS. It reads, merges, compares and writes, and may be run again. Tally
        has no record of what it makes.
      </p>
      <Shown loaded={loaded}>{({ script }) => <Lines>{script}</Lines>}</Shown>
      <div class="actions">
        {loaded.value !== undefined && <CopyButton copied={{ text: loaded.value.script, isJson: false }}>Copy the script</CopyButton>}
        <button type="button" class="secondary outline" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
