/** Dead letters: messages that could not be handled. */
import { useState } from 'preact/hooks';
import type { DeadLetter, WholeDeadLetter } from '../../api/dead-letters.ts';
import { printable } from '../../domain/printable.ts';
import { call } from './api.ts';
import { Lines } from './findings.tsx';
import { useLoaded } from './load.ts';
import { Field, FormDialog } from './form.tsx';
import { announce, type Column, CopyButton, Details, Dialog, Shown, Size, Table, Text, Time } from './parts.tsx';
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
      <p>Messages that could not be handled. Their changes are covered by gaps; a letter that is replayed is handled like a new event.</p>
      <Shown loaded={loaded}>
        {({ items }) => (items.length === 0 ? <p class="empty">No dead letter.</p> : <Letters letters={items} onDone={loaded.reload} />)}
      </Shown>
    </>
  );
}

function Letters({ letters, onDone }: { readonly letters: readonly DeadLetter[]; readonly onDone: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<'replay' | 'discard' | { readonly letter: DeadLetter }>();
  // what is not shown any more is not acted on
  const ids = letters.map(({ id }) => id).filter((id) => chosen.has(id));
  const close = (): void => setOpen(undefined);
  function done(text: string): void {
    announce(text);
    close();
    setChosen(new Set());
    onDone();
  }
  return (
    <>
      <LetterTable letters={letters} chosen={chosen} onChosen={setChosen} onOpen={(letter) => setOpen({ letter })} />
      <div class="actions">
        <button type="button" disabled={ids.length === 0} onClick={() => setOpen('replay')}>
          Replay {numberText(ids.length)}…
        </button>
        <button type="button" class="danger" disabled={ids.length === 0} onClick={() => setOpen('discard')}>
          Discard {numberText(ids.length)}…
        </button>
      </div>
      {open === 'replay' && <ReplayDialog ids={ids} onDone={done} onClose={close} />}
      {open === 'discard' && <DiscardDialog ids={ids} onDone={done} onClose={close} />}
      {typeof open === 'object' && <LetterDialog id={open.letter.id} onClose={close} />}
    </>
  );
}

interface TableProps {
  readonly letters: readonly DeadLetter[];
  readonly chosen: ReadonlySet<string>;
  readonly onChosen: (chosen: ReadonlySet<string>) => void;
  readonly onOpen: (letter: DeadLetter) => void;
}

function LetterTable({ letters, chosen, onChosen, onOpen }: TableProps) {
  const all = letters.every(({ id }) => chosen.has(id));
  const toggled = (id: string): ReadonlySet<string> =>
    new Set(chosen.has(id) ? [...chosen].filter((each) => each !== id) : [...chosen, id]);
  const columns: readonly Column<DeadLetter>[] = [
    [
      'Choose',
      ({ id }) => (
        <input type="checkbox" aria-label={`Choose ${printable(id)}`} checked={chosen.has(id)} onChange={() => onChosen(toggled(id))} />
      ),
    ],
    [
      'Letter',
      (letter) => (
        <button type="button" class="outline small" onClick={() => onOpen(letter)}>
          <Text>{letter.id}</Text>
        </button>
      ),
      'row',
    ],
    ['Fault', ({ fault }) => (fault === undefined ? 'moved by SQS' : <Text>{fault}</Text>)],
    ['Reason', ({ reason }) => reason !== undefined && <Text>{reason}</Text>],
    ['Sent', ({ sent_at: at }) => <Time at={at} />],
    ['Size', ({ size_bytes: bytes }) => <Size bytes={bytes} />],
  ];
  return (
    <>
      <div class="check">
        <label>
          <input type="checkbox" checked={all} onChange={() => onChosen(all ? new Set() : new Set(letters.map(({ id }) => id)))} />
          All {numberText(letters.length)} that are shown
        </label>
      </div>
      <Table label="Dead letters" columns={columns} rows={letters} keyOf={({ id }) => id} />
    </>
  );
}

/** SQS counts approximately, and letters may have come meanwhile. */
function remainingText(remaining: number): string {
  return remaining === 0 ? '' : ` About ${numberText(remaining)} remain.`;
}

interface ChoiceProps {
  readonly ids: readonly string[];
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
}

function ReplayDialog({ ids: shown, onDone, onClose }: ChoiceProps) {
  const [ids] = useState(shown);
  async function replay(): Promise<void> {
    const { replayed, remaining } = await call('POST /v1/dead-letters/replay', { body: { ids } });
    onDone(`Sent back to the bucket queue: ${countText(replayed, 'letter')}.${remainingText(remaining)}`);
  }
  return (
    <FormDialog title="Replay?" onClose={onClose} submit={`Replay ${numberText(ids.length)}`} onSubmit={replay}>
      <p>Sent to the bucket queue again, with the original body: {countText(ids.length, 'letter')}.</p>
    </FormDialog>
  );
}

function DiscardDialog({ ids: shown, onDone, onClose }: ChoiceProps) {
  const [ids] = useState(shown);
  const [typed, setTyped] = useState('');
  async function discard(): Promise<void> {
    const { discarded, remaining } = await call('POST /v1/dead-letters/discard', { body: { ids } });
    onDone(`Deleted: ${countText(discarded, 'letter')}.${remainingText(remaining)}`);
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
      <p>Deleted for good, and not readable afterwards: {countText(ids.length, 'letter')}.</p>
      <Field label="Type the number of letters" value={typed} onChange={setTyped} />
    </FormDialog>
  );
}

function LetterDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const loaded = useLoaded(`letter ${id}`, (signal) => call('GET /v1/dead-letters/{id}', { params: { id } }, signal));
  return (
    <Dialog title="Dead letter" onClose={onClose}>
      <Shown loaded={loaded}>{(letter) => <LetterDetails letter={letter} />}</Shown>
      <div class="actions">
        {loaded.value !== undefined && <CopyButton copied={{ text: loaded.value.body, isJson: false }}>Copy body</CopyButton>}
        <button type="button" class="secondary outline" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

/** The body may be anything that anyone could send to the queue. */
function LetterDetails({ letter }: { readonly letter: WholeDeadLetter }) {
  const { context } = letter;
  return (
    <>
      <Details
        of={[
          ['Id', <Text>{letter.id}</Text>],
          ['Fault', letter.fault],
          ['Reason', letter.reason !== undefined && <Text>{letter.reason}</Text>],
          ['Sent', <Time at={letter.sent_at} />],
          ['Received from', context?.queue !== undefined && <Text>{context.queue}</Text>],
          ['First received', context?.first_received_at !== undefined && <Text>{context.first_received_at}</Text>],
          ['Records that failed', context?.records?.join(', ')],
        ]}
      />
      <Lines>{letter.body}</Lines>
    </>
  );
}
