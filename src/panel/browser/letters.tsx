/** Dead letters: messages that Tally could not handle. */
import type { DeadLetter } from '../../registry/contract/dead-letters.ts';
import { countText } from '../../base/texts.ts';
import { call } from './api.ts';
import { Lines } from './findings.tsx';
import { AskedAct } from './form.tsx';
import { useAnswer } from './load.ts';
import { announce, type Column, CopyButton, Details, Fold, Shown, Size, Table, Text, Time } from './parts.tsx';

/** SQS shows a letter to one reader at a time, so the page reads once, and then only on request. */
const LETTERS_MAX = 200;

export function LettersPage() {
  const loaded = useAnswer('GET /v1/dead-letters', { query: { limit: LETTERS_MAX } });
  return (
    <>
      <div class="heading">
        <h1>Dead letters</h1>
        <button type="button" class="outline" disabled={loaded.isLoading} onClick={loaded.reload}>
          Read again
        </button>
      </div>
      <p>Messages that Tally could not process. Gaps cover their changes. Tally processes a replayed letter like a new event.</p>
      <Shown loaded={loaded}>
        {({ items }) => (
          <>
            {items.length > 1 && <Acts ids={items.map(({ id }) => id)} onDone={loaded.reload} />}
            <Table label="Dead letters" columns={columnsOf(loaded.reload)} rows={items} keyOf={({ id }) => id} empty="No dead letters." />
          </>
        )}
      </Shown>
    </>
  );
}

/** What can be done with one letter, or with all on the page. */
function Acts({ ids, onDone }: { readonly ids: readonly string[]; readonly onDone: () => void }) {
  async function replay(): Promise<void> {
    const { replayed, remaining } = await call('POST /v1/dead-letters/replay', { body: { ids } });
    announce(`Sent back to the bucket queue: ${countText(replayed, 'letter')}.${remainingText(remaining)}`);
    onDone();
  }
  async function discard(): Promise<void> {
    const { discarded, remaining } = await call('POST /v1/dead-letters/discard', { body: { ids } });
    announce(`Deleted: ${countText(discarded, 'letter')}.${remainingText(remaining)}`);
    onDone();
  }
  const which = ids.length === 1 ? '' : ` all ${countText(ids.length)}`;
  return (
    <div class="actions">
      <AskedAct text={`Replay${which}…`} look="outline small" title="Replay?" submit={`Replay ${countText(ids.length)}`} act={replay}>
        <p>Tally sends {countText(ids.length, 'letter')} to the bucket queue again, with the original body.</p>
      </AskedAct>
      {/* what is discarded is gone, so the person types how many letters that are */}
      <AskedAct
        text={`Discard${which}…`}
        title="Discard permanently?"
        submit={`Discard ${countText(ids.length)}`}
        typed={{ label: 'Type the number of letters', text: String(ids.length) }}
        act={discard}
      >
        <p>Tally deletes {countText(ids.length, 'letter')} permanently. You cannot undo this.</p>
      </AskedAct>
    </div>
  );
}

/** The reason comes first. Unfolding a letter reads its body. */
function columnsOf(onDone: () => void): readonly Column<DeadLetter>[] {
  return [
    ['Why', ({ reason }) => <Text>{reason ?? 'SQS moved it here, so no reason is known.'}</Text>, 'row'],
    ['Fault', ({ fault = 'moved by SQS' }) => <Text>{fault}</Text>],
    ['Sent', ({ sent_at: at }) => <Time at={at} />],
    ['Size', ({ size_bytes: bytes }) => <Size bytes={bytes} />, 'number'],
    ['Message', ({ id }) => <Fold summary="The message">{() => <Body id={id} />}</Fold>],
    ['Actions', ({ id }) => <Acts ids={[id]} onDone={onDone} />],
  ];
}

/** The body may be anything that someone sent to the queue. */
function Body({ id }: { readonly id: string }) {
  const loaded = useAnswer('GET /v1/dead-letters/{id}', { params: { id } });
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
          <CopyButton copied={body}>Copy the body</CopyButton>
        </>
      )}
    </Shown>
  );
}

/** SQS's count is approximate, and more letters may have arrived. */
function remainingText(remaining: number): string {
  return remaining === 0 ? '' : ` About ${countText(remaining)} remain.`;
}
