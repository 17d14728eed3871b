/** Long lists in the window: only the rows near what is seen are drawn (TanStack Virtual), and their elements are used again. */
import { observeWindowOffset, observeWindowRect, Virtualizer, windowScroll } from '@tanstack/virtual-core';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { place, scrollOf } from './place.ts';
import { slotsFor, type Slots } from './slots.ts';

/** Rows that are drawn beyond what is seen, so that keys and wheels find them. */
const BEYOND = 8;
/** What is drawn changes after this many rows, and not with each. */
const STEP = 4;

interface Wishes {
  readonly count: number;
  readonly rowPx: number;
  /** The body of the table. Its rows have `aria-rowindex`, which counts from the heading on. */
  readonly body: { readonly current: HTMLElement | null };
}

interface VirtualRows {
  /** The rows to draw, in order, each with the key of its element. */
  readonly items: readonly (readonly [row: number, slot: number])[];
  /** The height of what is not drawn above and below, in pixels. */
  readonly abovePx: number;
  readonly belowPx: number;
}

/** The rows to draw. */
export function useVirtualRows({ count, rowPx, body }: Wishes): VirtualRows {
  const [, draw] = useState({});
  const [marginPx, setMargin] = useState(0);
  const slots = useRef<Slots>(new Map());
  const drawn = useRef<readonly number[]>([]);
  const beyond = useRef(BEYOND);
  const topPx = (): number => (body.current === null ? 0 : Math.round(body.current.getBoundingClientRect().top + scrollY));
  const options = {
    count,
    estimateSize: () => rowPx,
    overscan: beyond.current,
    scrollMargin: marginPx,
    getScrollElement: () => window,
    observeElementRect: observeWindowRect,
    observeElementOffset: observeWindowOffset,
    scrollToFn: windowScroll<Window>,
    initialRect: { width: innerWidth, height: innerHeight },
    initialOffset: () => (place.read().isReturn ? scrollOf(place.read().href) : scrollY),
    rangeExtractor: rowsOf,
    onChange(changed: Virtualizer<Window, HTMLElement>) {
      const jumps = changed.isScrolling && isJump(changed.range, drawn.current);
      // of a jump only what is seen is drawn, until it ends: there may be one in each frame. So no rows make up for what came above.
      beyond.current = jumps ? 0 : BEYOND;
      if (jumps) setMargin(topPx());
      changed.options.overscan = beyond.current;
      if (changed.getVirtualIndexes().join() !== drawn.current.join()) draw({});
    },
  };
  const [virtualizer] = useState(() => new Virtualizer<Window, HTMLElement>(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  // rows beyond what is seen make up for what grows above the list
  useLayoutEffect(() => setMargin(topPx()), [count, rowPx]);
  useLayoutEffect(() => virtualizer.measure(), [rowPx]);
  const rows = virtualizer.getVirtualIndexes();
  drawn.current = rows;
  slots.current = slotsFor(rows, slots.current, usedIn(body.current));
  const [first = 0] = rows;
  return { items: [...slots.current], abovePx: first * rowPx, belowPx: (count - first - rows.length) * rowPx };
}

/** Whether nothing of what was drawn is seen. */
function isJump(range: Pick<Range, 'startIndex' | 'endIndex'> | null, drawn: readonly number[]): boolean {
  return range !== null && (range.endIndex < (drawn[0] ?? 0) || range.startIndex > (drawn.at(-1) ?? 0));
}

interface Range {
  readonly startIndex: number;
  readonly endIndex: number;
  readonly overscan: number;
  readonly count: number;
}

function rowsOf({ startIndex, endIndex, overscan, count }: Range): number[] {
  const first = Math.max(0, Math.floor((startIndex - overscan) / STEP) * STEP);
  const end = Math.min(count, Math.ceil((endIndex + 1 + overscan) / STEP) * STEP);
  return Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at);
}

/** The rows that a person works in. */
function usedIn(body: HTMLElement | null): ReadonlySet<number> {
  const used = body?.querySelectorAll(':focus, [aria-expanded="true"]') ?? [];
  return new Set([...used].map((each) => Number(each.closest('tr')?.ariaRowIndex) - 2));
}
