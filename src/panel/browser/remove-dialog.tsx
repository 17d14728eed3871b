/** Disconnects a bucket, and says what is left of it. */
import { useState } from 'preact/hooks';
import { call, type AnswerTo } from './api.ts';
import { Check, Field, FormDialog, useIsShown } from './form.tsx';
import { announce, Dialog, Text } from './parts.tsx';
import { go, hrefOf } from './place.ts';

type Kept = AnswerTo<'DELETE /v1/buckets/{bucket}'>['kept'];

/** Parts in AWS that were left there, and why. */
export function KeptParts({ kept }: { readonly kept: Kept }) {
  return (
    <ul>
      {kept.map(({ name, reason }) => (
        <li key={name}>
          <Text>{name}</Text>: <Text>{reason}</Text>
        </li>
      ))}
    </ul>
  );
}

export function RemoveDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [keepsAws, setKeepsAws] = useState(false);
  const [keepsDocuments, setKeepsDocuments] = useState(false);
  const [kept, setKept] = useState<Kept>();
  const isShown = useIsShown();
  async function remove(): Promise<void> {
    const query = { ...(keepsAws && { keep_aws: 'true' as const }), ...(keepsDocuments && { keep_documents: 'true' as const }) };
    const removed = await call('DELETE /v1/buckets/{bucket}', { params: { bucket: name }, query });
    announce(`${name} is disconnected.`);
    if (!isShown()) return;
    if (removed.kept.length === 0) leave();
    else setKept(removed.kept);
  }
  if (kept !== undefined) {
    return (
      <Dialog title={`${name} is disconnected`} onClose={leave}>
        <p>Left in AWS, because Tally does not delete what others have changed or need:</p>
        <KeptParts kept={kept} />
        <div class="actions">
          <button type="button" onClick={leave}>
            Show the buckets
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog title={`Disconnect ${name}?`} onClose={onClose} submit="Disconnect" onSubmit={remove} isDanger isDisabled={typed !== name}>
      <p>Searches find nothing of it any more. To index it again takes a re-index of the whole bucket.</p>
      <Check
        label="Keep what Tally made in AWS"
        isChecked={keepsAws}
        onChange={setKeepsAws}
        hint="Its events continue to arrive, and Tally forgets that it made what sends them."
      />
      <Check
        label="Keep the documents in the index"
        isChecked={keepsDocuments}
        onChange={setKeepsDocuments}
        hint="They stay as they are, and are not kept current."
      />
      <Field label="Type the name of the bucket" value={typed} onChange={setTyped} />
    </FormDialog>
  );
}

function leave(): void {
  go(hrefOf('buckets'));
}
