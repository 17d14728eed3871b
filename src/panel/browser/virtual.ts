/** Long lists in the window: only the rows near what is seen are drawn (TanStack Virtual). */
import { observeWindowOffset, observeWindowRect, Virtualizer, windowScroll, type VirtualItem } from '@tanstack/virtual-core';
import { useLayoutEffect, useState } from 'preact/hooks';
import { place, scrollOf } from './place.ts';

/** Rows that are drawn beyond what is seen, so that keys and wheels find them. */
const BEYOND = 12;

interface Wishes {
  readonly count: number;
  readonly rowPx: number;
  /** The body of the table. */
  readonly body: { readonly current: HTMLElement | null };
}

export interface VirtualRows {
  readonly items: readonly VirtualItem[];
  /** The height of what is not drawn above and below, in pixels. */
  readonly abovePx: number;
  readonly belowPx: number;
}

/** The rows to draw. */
export function useVirtualRows({ count, rowPx, body }: Wishes): VirtualRows {
  const [, draw] = useState({});
  const [marginPx, setMargin] = useState(0);
  const options = {
    count,
    estimateSize: () => rowPx,
    overscan: BEYOND,
    scrollMargin: marginPx,
    getScrollElement: () => window,
    observeElementRect: observeWindowRect,
    observeElementOffset: observeWindowOffset,
    scrollToFn: windowScroll<Window>,
    initialRect: { width: innerWidth, height: innerHeight },
    initialOffset: () => (place.read().isReturn ? scrollOf(place.read().href) : scrollY),
    onChange: () => draw({}),
  };
  const [virtualizer] = useState(() => new Virtualizer<Window, HTMLElement>(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  // rows beyond what is seen make up for what grows above the list
  useLayoutEffect(() => {
    const top = body.current === null ? 0 : Math.round(body.current.getBoundingClientRect().top + scrollY);
    if (top !== marginPx) setMargin(top);
  }, [count, rowPx]);
  useLayoutEffect(() => virtualizer.measure(), [rowPx]);
  const items = virtualizer.getVirtualItems();
  const first = items[0];
  const last = items.at(-1);
  return {
    items,
    abovePx: first === undefined ? 0 : first.start - marginPx,
    belowPx: last === undefined ? 0 : virtualizer.getTotalSize() - (last.end - marginPx),
  };
}
