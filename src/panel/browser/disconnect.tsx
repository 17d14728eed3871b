/** Disconnects a bucket, and says what remains of it. */
import { useRef } from 'preact/hooks';
import { call, type AnswerTo } from './api.ts';
import { AskedAct, Check } from './form.tsx';
import { announce, Text } from './parts.tsx';
import { go, hrefOf, place, type Choices } from './place.ts';
import { may } from './session.ts';

export function DisconnectSection({ bucket }: { readonly bucket: string }) {
  const isRemoved = useRef(false);
  const here = place.read();
  if (!may('DELETE /v1/buckets/{bucket}')) return null;
  async function remove({ aws }: Choices) {
    const query = aws === undefined ? {} : { keep_aws: 'true' as const };
    const { kept } = await call('DELETE /v1/buckets/{bucket}', { params: { bucket }, query });
    isRemoved.current = true;
    announce(`${bucket} is disconnected.`);
    return kept.length === 0 ? undefined : <Kept of={kept} />;
  }
  const leave = (): void => {
    if (isRemoved.current && place.read() === here) go(hrefOf('buckets'));
  };
  return (
    <section>
      <h2>Disconnect</h2>
      <p>Tally removes what it created in AWS and deletes the bucket’s documents. It never touches the bucket itself or its objects.</p>
      <AskedAct
        text="Disconnect…"
        look="danger outline"
        title={`Disconnect ${bucket}?`}
        typed={{ label: 'Type the bucket’s name', text: bucket }}
        act={remove}
        onClosed={leave}
      >
        <p>Searches no longer find its objects. To index them again takes a re-index of the whole bucket.</p>
        <Check
          label="Keep what Tally created in AWS"
          name="aws"
          hint="Its events keep arriving, and Tally forgets what it created there."
        />
      </AskedAct>
    </section>
  );
}

function Kept({ of }: { readonly of: AnswerTo<'DELETE /v1/buckets/{bucket}'>['kept'] }) {
  return (
    <>
      <p>Left in AWS, because someone else changed it or may need it:</p>
      <ul>
        {of.map(({ name, reason }) => (
          <li key={name}>
            <Text>{name}</Text>: <Text>{reason}</Text>
          </li>
        ))}
      </ul>
    </>
  );
}
