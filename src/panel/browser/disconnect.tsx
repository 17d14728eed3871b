/** Disconnects a bucket, and says what is left of it. */
import { useState } from 'preact/hooks';
import { call, type AnswerTo } from './api.ts';
import { AskedAct, Check } from './form.tsx';
import { announce, Dialog, Text } from './parts.tsx';
import { go, hrefOf, place, type Choices } from './place.ts';
import { may } from './session.ts';

type Kept = AnswerTo<'DELETE /v1/buckets/{bucket}'>['kept'];

const leave = (): void => go(hrefOf('buckets'));

export function DisconnectSection({ bucket }: { readonly bucket: string }) {
  const [kept, setKept] = useState<Kept>([]);
  if (!may('DELETE /v1/buckets/{bucket}')) return null;
  async function remove({ aws, documents }: Choices): Promise<void> {
    const here = place.read();
    const query = {
      ...(aws !== undefined && { keep_aws: 'true' as const }),
      ...(documents !== undefined && { keep_documents: 'true' as const }),
    };
    const removed = await call('DELETE /v1/buckets/{bucket}', { params: { bucket }, query });
    announce(`${bucket} is disconnected.`);
    setKept(removed.kept);
    if (removed.kept.length === 0 && place.read() === here) leave();
  }
  return (
    <section>
      <h2>Disconnect</h2>
      <p>Tally takes away what it made in AWS and deletes the bucket’s documents. The bucket and its objects are not touched.</p>
      <AskedAct
        text="Disconnect…"
        look="danger outline"
        title={`Disconnect ${bucket}?`}
        submit="Disconnect"
        typed={{ label: 'Type the name of the bucket', text: bucket }}
        act={remove}
      >
        <p>Searches find nothing of it any more. To index it again takes a re-index of the whole bucket.</p>
        <Check
          label="Keep what Tally made in AWS"
          name="aws"
          hint="Its events continue to arrive, and Tally forgets that it made what sends them."
        />
        <Check label="Keep the documents in the index" name="documents" hint="They stay as they are, and are not kept current." />
      </AskedAct>
      {kept.length > 0 && (
        <Dialog title={`${bucket} is disconnected`} onClose={leave}>
          <p>Left in AWS, because Tally does not delete what others have changed or need:</p>
          <ul>
            {kept.map(({ name, reason }) => (
              <li key={name}>
                <Text>{name}</Text>: <Text>{reason}</Text>
              </li>
            ))}
          </ul>
          <div class="actions">
            <button type="button" onClick={leave}>
              Show the buckets
            </button>
          </div>
        </Dialog>
      )}
    </section>
  );
}
