/** Dead letters: messages that Tally could not handle. */
import { useState } from 'preact/hooks';
import type { DeadLetter } from '../../api/dead-letters.ts';
import { call } from './api.ts';
import { Lines } from './findings.tsx';
import { Field, FormDialog } from './form.tsx';
import { useLoaded } from './load.ts';
import { announce, CopyButton, Details, Shown, Size, Text, Time } from './parts.tsx';
import { countText, numberText } from './words.ts';

/** SQS shows a letter to one reader at a time, so the page reads once, and again on request. */
const LETTERS_MAX = 200;

interface Asked {
  readonly act: 'replay' | 'discard';
  readonly ids: readonly string[];
}

export function LettersPage() {
  const loaded = useLoaded('letters', (signal) => call('GET /v1/dead-letters', { query: { limit: LETTERS_MAX } }, signal));
  const [asked, setAsked] = useState<Asked>();
  function done(text: string): void {
    announce(text);
    setAsked(undefined);
    loaded.reload();
  }
  return (
    <>
      <div class="heading">
        <h1>Dead letters</h1>
        <button type="button" class="outline" disabled={loaded.isLoading} onClick={loaded.reload}>
          Read again
        </button>
      </div>
      <p>Messages that Tally could not handle. Gaps cover their changes; a letter that is replayed is handled like a new event.</p>
      <Shown loaded={loaded}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="empty">No dead letter.</p>
          ) : (
            <>
              {items.length > 1 && <Acts ids={items.map(({ id }) => id)} onAsked={setAsked} />}
              <ul class="letters" aria-label="Dead letters">
                {items.map((letter) => (
                  <Letter key={letter.id} of={letter} onAsked={setAsked} />
                ))}
              </ul>
            </>
          )
        }
      </Shown>
      {asked !== undefined && <LettersDialog asked={asked} onDone={done} onClose={() => setAsked(undefined)} />}
    </>
  );
}

interface ActsProps {
  readonly ids: readonly string[];
  readonly onAsked: (asked: Asked) => void;
}

/** What can be done with one letter, or with all that are shown. */
function Acts({ ids, onAsked }: ActsProps) {
  const which = ids.length === 1 ? '' : ` all ${numberText(ids.length)}`;
  return (
    <div class="actions">
      <button type="button" class="outline small" onClick={() => onAsked({ act: 'replay', ids })}>
        Replay{which}…
      </button>
      <button type="button" class="danger outline small" onClick={() => onAsked({ act: 'discard', ids })}>
        Discard{which}…
      </button>
    </div>
  );
}

/** The reason first. The body is read when it is unfolded. */
function Letter({ of: letter, onAsked }: { readonly of: DeadLetter } & Pick<ActsProps, 'onAsked'>) {
  const [isOpen, setOpen] = useState(false);
  const { id, reason, fault = 'moved by SQS', sent_at: sent, size_bytes: bytes } = letter;
  return (
    <li>
      <div>
        <strong>
          <Text>{reason ?? 'SQS moved it here, so no reason is known.'}</Text>
        </strong>{' '}
        <small class="quiet">
          <Text>{fault}</Text>, <Time at={sent} />, <Size bytes={bytes} />
        </small>
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>The message</summary>
          {isOpen && <Body id={id} />}
        </details>
      </div>
      <Acts ids={[id]} onAsked={onAsked} />
    </li>
  );
}

/** The body may be anything that anyone could send to the queue. */
function Body({ id }: { readonly id: string }) {
  const loaded = useLoaded(`letter ${id}`, (signal) => call('GET /v1/dead-letters/{id}', { params: { id } }, signal));
  return (
    <Shown loaded={loaded}>
      {({ context, body }) => (
        <>
          <Details
            of={[
              ['Id', <Text>{id}</Text>],
              ['Received from', context?.queue !== undefined && <Text>{context.queue}</Text>],
              ['First received', context?.first_received_at !== undefined && <Text>{context.first_received_at}</Text>],
              ['Records that failed', context?.records?.join(', ')],
            ]}
          />
          <Lines>{body}</Lines>
          <CopyButton copied={{ text: body, isJson: false }}>Copy the body</CopyButton>
        </>
      )}
    </Shown>
  );
}

/** SQS counts approximately, and letters may have come meanwhile. */
function remainingText(remaining: number): string {
  return remaining === 0 ? '' : ` About ${numberText(remaining)} remain.`;
}

interface DialogProps {
  readonly asked: Asked;
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
}

/** What is discarded is gone, so the person types how many letters that are. */
function LettersDialog({ asked: { act, ids }, onDone, onClose }: DialogProps) {
  const [typed, setTyped] = useState('');
  const isDiscard = act === 'discard';
  const letters = countText(ids.length, 'letter');
  async function replay(): Promise<void> {
    const { replayed, remaining } = await call('POST /v1/dead-letters/replay', { body: { ids } });
    onDone(`Sent back to the bucket queue: ${countText(replayed, 'letter')}.${remainingText(remaining)}`);
  }
  async function discard(): Promise<void> {
    const { discarded, remaining } = await call('POST /v1/dead-letters/discard', { body: { ids } });
    onDone(`Deleted: ${countText(discarded, 'letter')}.${remainingText(remaining)}`);
  }
  return (
    <FormDialog
      title={isDiscard ? 'Discard for good?' : 'Replay?'}
      onClose={onClose}
      submit={`${isDiscard ? 'Discard' : 'Replay'} ${numberText(ids.length)}`}
      onSubmit={isDiscard ? discard : replay}
      isDanger={isDiscard}
      isDisabled={isDiscard && typed !== String(ids.length)}
    >
      <p>
        {isDiscard
          ? `Tally deletes ${letters} for good. Nobody can read them afterwards.`
          : `Tally sends ${letters} to the bucket queue again, with the original body.`}
      </p>
      {isDiscard && <Field label="Type the number of letters" value={typed} onChange={setTyped} />}
    </FormDialog>
  );
}
