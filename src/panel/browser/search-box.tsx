/** The one box: what is typed becomes the address once it is submitted. */
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { locationOf } from '../../search/location.rules.ts';
import { parseQuery } from '../../search/parse.rules.ts';
import { Text } from './parts.tsx';
import { go, hrefOf, place } from './place.ts';
import { clauseOf, withClauses } from './query-text.ts';
import { searchHref, type Search } from './search-place.ts';

const HINT =
  'Words of the key, "exact parts", patterns such as *.tar.gz, and filters: ext:pdf size>1G modified<7d -word. Or paste an s3:// address, an ARN or a link to an object.';
const PLACEHOLDER = 'Words, "exact parts", *.tar.gz, ext:pdf size>1G modified<7d, or an s3:// address';

/** What is wrong with the text of the box, if something is: the registry reads it in the same way. */
export function mistakeIn({ query }: Search) {
  const parsed = parseQuery(query, { nowMs: Date.now(), timeZone: 'UTC' });
  return 'message' in parsed ? parsed : undefined;
}

/** The address to which a submitted text leads: that of an object or a folder if it names one. */
function destinationOf(text: string, search: Search): string {
  const location = locationOf(text);
  if (location === undefined) return searchHref({ ...search, query: text, open: undefined });
  const { bucket, key } = location;
  if (key !== '' && !key.endsWith('/')) return hrefOf('object', { bucket, key });
  const query = withClauses(clauseOf('bucket', bucket), key === '' ? '' : clauseOf('prefix', key));
  return searchHref({ ...search, query, open: undefined });
}

interface BoxProps {
  readonly search: Search;
  readonly mistake: ReturnType<typeof mistakeIn>;
  /** The same search is wanted once more. */
  readonly onAgain: () => void;
}

export function SearchBox({ search, mistake, onAgain }: BoxProps) {
  const [typed, setTyped] = useState(search.query);
  const box = useRef<HTMLTextAreaElement>(null);
  // who comes to search types at once
  useLayoutEffect(() => {
    if (search.query === '' && !place.read().isReturn) box.current?.focus({ preventScroll: true });
  }, []);
  const id = useId();
  function submit(event: Event): void {
    event.preventDefault();
    const href = destinationOf(typed.trim(), search);
    if (href === place.read().href) onAgain();
    else go(href);
  }
  return (
    <>
      <form class="search-line" onSubmit={submit}>
        <label class="box">
          <span class="unseen">Search for</span>
          <textarea
            ref={box}
            id="search-box"
            rows={1}
            value={typed}
            placeholder={PLACEHOLDER}
            autocomplete="off"
            spellcheck={false}
            autocapitalize="off"
            aria-invalid={mistake === undefined ? undefined : true}
            aria-describedby={mistake === undefined ? `${id}-hint` : `${id}-mistake ${id}-hint`}
            onInput={(event) => setTyped(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }}
          />
        </label>
        <small class="unseen" id={`${id}-hint`}>
          {HINT}
        </small>
        <button type="submit">Search</button>
      </form>
      {mistake !== undefined && (
        <p role="alert" class="failure" id={`${id}-mistake`}>
          <Text>{mistake.message}</Text>:{' '}
          <code>
            <Text>{search.query.slice(0, mistake.position)}</Text>
            <mark>
              <Text>{search.query.slice(mistake.position)}</Text>
            </mark>
          </code>
        </p>
      )}
    </>
  );
}
