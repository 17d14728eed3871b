/** The plan as code, for people who may not let Tally change AWS, or keep infrastructure as code. */
import { useState } from 'preact/hooks';
import { call, type RequestTo } from './api.ts';
import { Lines } from './findings.tsx';
import { Select } from './form.tsx';
import { useLoaded } from './load.ts';
import { CopyButton, Dialog, Shown } from './parts.tsx';

type Query = NonNullable<RequestTo<'GET /v1/buckets/{bucket}/script'>['query']>;
type Format = NonNullable<Query['format']>;

interface ScriptProps {
  readonly bucket: string;
  readonly wish: Omit<Query, 'format'>;
  readonly onClose: () => void;
}

const FORMATS: Readonly<Record<Format, readonly [name: string, text: string]>> = {
  'aws-cli': ['AWS CLI', 'For bash, the AWS CLI 2 and jq. It reads, merges, compares and writes, and may be run again.'],
  cloudformation: [
    'CloudFormation',
    'A stack owns what it makes. The first lines name what the template leaves out, because others use it as well.',
  ],
  terraform: ['Terraform', 'A configuration owns what it makes. The first lines name what it leaves out, because others use it as well.'],
};

export function ScriptDialog({ bucket, wish, onClose }: ScriptProps) {
  const [format, setFormat] = useState<Format>('aws-cli');
  const query = { ...wish, format };
  const loaded = useLoaded(`script ${bucket} ${JSON.stringify(query)}`, (signal) =>
    call('GET /v1/buckets/{bucket}/script', { params: { bucket }, query }, signal),
  );
  const [, text] = FORMATS[format];
  return (
    <Dialog title={`Script for ${bucket}`} onClose={onClose}>
      <Select
        label="Format"
        value={format}
        choices={Object.entries(FORMATS).map(([each, [name]]) => [each, name])}
        onChange={(chosen) => setFormat(Object.keys(FORMATS).find((each): each is Format => each === chosen) ?? 'aws-cli')}
        hint={text}
      />
      <p>For a person who may change AWS. Tally has no record of what it makes.</p>
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
