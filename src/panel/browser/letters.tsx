/** Dead letters: messages that Tally could not handle. */
import { useState } from 'preact/hooks';
import type { DeadLetter } from '../../api/dead-letters.ts';
import { call } from './api.ts';
import { Lines } from './findings.tsx';
import { AskedAct, Field, FormDialog, Opener } from './form.tsx';
import { useLoaded } from './load.ts';
import { announce, CopyButton, Details, Shown, Size, Text, Time } from './parts.tsx';
import { countText, numberText } from './words.ts';

/** SQS shows a letter to one reader at a time, so the page reads once, and again on request. */
const LETTERS_MAX = 200;

export function LettersPage() {
  const loaded = useLoaded('letters', (signal) => call('GET /v1/dead-letters', { query: { limit: LETTERS_MAX } }, signal));
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
              {items.length > 1 && <Acts ids={items.map(({ id }) => id)} onDone={loaded.reload} />}
              <ul class="letters" aria-label="Dead letters">
                {items.map((letter) => (
                  <Letter key={letter.id} of={letter} onDone={loaded.reload} />
                ))}
              </ul>
            </>
          )
        }
      </Shown>
    </>
  );
}

interface ActsProps {
  readonly ids: readonly string[];
  readonly onDone: () => void;
}

/** What can be done with one letter, or with all that are shown. */
function Acts({ ids, onDone }: ActsProps) {
  async function replay(): Promise<void> {
    const { replayed, remaining } = await call('POST /v1/dead-letters/replay', { body: { ids } });
    announce(`Sent back to the bucket queue: ${countText(replayed, 'letter')}.${remainingText(remaining)}`);
    onDone();
  }
  const which = ids.length === 1 ? '' : ` all ${numberText(ids.length)}`;
  return (
    <div class="actions">
      <AskedAct text={`Replay${which}…`} look="outline small" title="Replay?" submit={`Replay ${numberText(ids.length)}`} act={replay}>
        <p>Tally sends {countText(ids.length, 'letter')} to the bucket queue again, with the original body.</p>
      </AskedAct>
      <Opener text={`Discard${which}…`} look="danger outline small">
        {(close) => <DiscardDialog ids={ids} onDone={onDone} onClose={close} />}
      </Opener>
    </div>
  );
}

/** The reason first. The body is read when it is unfolded. */
function Letter({ of: letter, onDone }: { readonly of: DeadLetter } & Pick<ActsProps, 'onDone'>) {
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
      <Acts ids={[id]} onDone={onDone} />
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

/** What is discarded is gone, so the person types how many letters that are. */
function DiscardDialog({ ids, onDone, onClose }: ActsProps & { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('');
  async function discard(): Promise<void> {
    const { discarded, remaining } = await call('POST /v1/dead-letters/discard', { body: { ids } });
    announce(`Deleted: ${countText(discarded, 'letter')}.${remainingText(remaining)}`);
    onClose();
    onDone();
  }
  return (
    <FormDialog
      title="Discard for good?"
      onClose={onClose}
      submit={`Discard ${numberText(ids.length)}`}
      onSubmit={discard}
      isDanger
      isDisabled={typed !== String(ids.length)}
    >
      <p>Tally deletes {countText(ids.length, 'letter')} for good. Nobody can read them afterwards.</p>
      <Field label="Type the number of letters" value={typed} onChange={setTyped} />
    </FormDialog>
  );
}
