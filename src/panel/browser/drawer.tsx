/** One object beside the results. Its address is that of the search with the object, so that it is a link too. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { ObjectView } from './object.tsx';
import { Link, Text } from './parts.tsx';
import { go, hrefOf, leftByOf, place } from './place.ts';
import { opening, type OpenObject, type Search } from './search-place.ts';

interface DrawerProps {
  readonly search: Search;
  readonly of: OpenObject;
}

export function Drawer({ search, of: { bucket, key } }: DrawerProps) {
  const drawer = useRef<HTMLElement>(null);
  const closed = hrefOf('search', opening(search));
  useLayoutEffect(() => drawer.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    function press(event: KeyboardEvent): void {
      const isBusy = document.querySelector('dialog[open], :popover-open') !== null;
      if (event.key === 'Escape' && !event.defaultPrevented && !isBusy) close();
    }
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [closed]);
  /** The row that opened it has the focus again. */
  function close(): void {
    const opened = place.read().href;
    go(closed, true);
    requestAnimationFrame(() => {
      const row = [...document.querySelectorAll<HTMLElement>('a[data-row]')].find((each) =>
        [opened, leftByOf(closed)].includes(each.getAttribute('href') ?? ''),
      );
      row?.focus({ preventScroll: true });
    });
  }
  return (
    <aside ref={drawer} class="drawer" tabIndex={-1} aria-labelledby="drawer-heading">
      <header>
        <h2 id="drawer-heading" class="key">
          <Text>{key}</Text>
        </h2>
        <button type="button" class="plain outline small" aria-label="Close" onClick={close}>
          ✕
        </button>
      </header>
      <ObjectView bucket={bucket} name={key} />
      <p>
        <Link page="object" choices={{ bucket, key }}>
          Open as a page
        </Link>
      </p>
    </aside>
  );
}
