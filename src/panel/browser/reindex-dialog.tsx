/** Re-Index and Repair: the dialog that starts a re-index of a bucket. */
import { useState } from 'preact/hooks';
import type { Bucket } from '../../api/buckets.ts';
import { call } from './api.ts';
import { Check, Field, FormDialog, useIsShown } from './form.tsx';
import { announce } from './parts.tsx';
import { go, hrefOf } from './place.ts';

/** Why Repair cannot be chosen; undefined: it can. */
function repairRefusal(source: Bucket['source']): string | undefined {
  if (source === 'notification') return undefined;
  return `Not possible: the events of this bucket come by ${source}, and repair would create a storage event notification, which would clash with that.`;
}

/** The dialog is created at each opening, so that Repair is never checked from before. */
export function ReindexDialog({ bucket: { bucket, source }, onClose }: { readonly bucket: Bucket; readonly onClose: () => void }) {
  const [prefix, setPrefix] = useState('');
  const [isRepair, setRepair] = useState(false);
  const [isReport, setReport] = useState(false);
  const [isFill, setFill] = useState(false);
  const refusal = repairRefusal(source);
  // the source may have changed since the box was checked
  const isRepaired = isRepair && refusal === undefined;
  const isShown = useIsShown();
  async function start(): Promise<void> {
    const job = await call('POST /v1/buckets/{bucket}/reindex', {
      params: { bucket },
      body: { prefix, mode: isReport ? 'report' : 'apply', repair: isRepaired, fill: isFill },
    });
    if (isShown()) go(hrefOf('job', { id: job.id }));
    else announce(`The re-index of ${bucket} has begun.`);
  }
  return (
    <FormDialog
      title={`Re-index ${bucket}`}
      onClose={onClose}
      submit={isReport ? 'Start the report' : 'Start the re-index'}
      onSubmit={start}
    >
      <p>Every object of the bucket is compared with the index, and what differs is corrected. Searches work meanwhile.</p>
      <Check
        label="Repair"
        isChecked={isRepaired}
        onChange={setRepair}
        isDisabled={refusal !== undefined}
        hint={
          refusal ??
          'Creates the storage event notification of the bucket again first. Leave it unchecked if another way delivers its events.'
        }
      />
      <Field label="Prefix" value={prefix} onChange={setPrefix} hint="Only keys that begin with this. Empty: all keys." />
      <Check label="Only report differences" isChecked={isReport} onChange={setReport} hint="Nothing is written." />
      <Check
        label="Fill in missing fields"
        isChecked={isFill}
        onChange={setFill}
        hint="Writes documents too that lack a field which a listing gives, or the enrichment."
      />
    </FormDialog>
  );
}
