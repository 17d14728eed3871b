/** The search box of every page. Submitting it puts its text into the address. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { locationOf } from '../../search/location.rules.ts';
import { readAgain } from './load.ts';
import { go, hrefOf, type Place } from './place.ts';
import { inFolder } from './query-text.ts';
import { searchHref, searchOf, type Search } from './search-place.ts';

/** Says what is wrong with the text, if anything. */
export const MISTAKE_ID = 'search-mistake';
const HINT =
  'Words of the key, "exact parts", patterns such as *.tar.gz, and filters: ext:pdf size>1G modified<7d -word. Or paste an s3:// address, an ARN or a link to an object.';
const PLACEHOLDER = 'Search: words, *.tar.gz, s3://…';

/** Where a submitted text leads: to the object or folder that it names, otherwise to a search. */
function destinationOf(text: string, search: Search): string {
  const location = locationOf(text);
  if (location === undefined) return searchHref({ ...search, query: text });
  const { bucket, key } = location;
  if (key !== '' && !key.endsWith('/')) return hrefOf('object', { bucket, key });
  return searchHref({ ...search, query: inFolder(bucket, key) });
}

export function SearchBox({ at: { page, choices, href, isHome, isReturn } }: { readonly at: Place }) {
  const search = searchOf(page === 'search' ? choices : {});
  const [typed, setTyped] = useState(search.query);
  const box = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    setTyped(search.query);
    // people who open the panel or the search page can type at once
    if ((isHome || page === 'search') && search.query === '' && !isReturn) box.current?.focus({ preventScroll: true });
  }, [href]);
  function submit(event: Event): void {
    event.preventDefault();
    // phones close their keyboard, and the next Tab goes to the results
    box.current?.blur();
    const destination = destinationOf(typed.trim(), search);
    if (destination === href) readAgain();
    else go(destination);
  }
  return (
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
          aria-describedby={`${MISTAKE_ID} search-hint`}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
        />
      </label>
      <small class="unseen" id="search-hint">
        {HINT}
      </small>
      <button type="submit">Search</button>
    </form>
  );
}
