/** A button that opens a small panel over the page, which Escape and a click beside it close. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface MenuProps {
  /** What a screen reader says of the button. Absent: what is shown. */
  readonly label?: string;
  readonly shown: ComponentChildren;
  readonly look?: string;
  readonly children: ComponentChildren;
}

/** From the press on a button to its click. */
const PRESS_MS = 300;

/** Its content exists while it is open only: a long list has a menu in each row. */
export function Menu({ label, shown, look = 'outline small', children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // a press on the button closes the panel before it is a click
  const closedAtMs = useRef(Number.NEGATIVE_INFINITY);
  const close = (): void => {
    closedAtMs.current = performance.now();
    setOpen(false);
  };
  const toggle = (): void => {
    if (performance.now() - closedAtMs.current > PRESS_MS) setOpen(!isOpen);
  };
  return (
    <>
      <button ref={button} type="button" class={look} aria-label={label} aria-expanded={isOpen} onClick={toggle}>
        {shown}
      </button>
      {isOpen && (
        <Opened beside={button} onDone={() => setOpen(false)} onClose={close}>
          {children}
        </Opened>
      )}
    </>
  );
}

interface OpenedProps {
  readonly beside: { readonly current: HTMLElement | null };
  /** Something of it was chosen. */
  readonly onDone: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Space between the button, the panel and the edge of the window, in pixels. */
const SPACE = 4;

/** Puts the panel under its button, or above it where there is no room. */
function put(panel: HTMLElement, button: HTMLElement): void {
  const { left, right, top, bottom } = button.getBoundingClientRect();
  const { width, height } = panel.getBoundingClientRect();
  const isAbove = bottom + SPACE + height > innerHeight && top > height;
  panel.style.top = `${Math.max(SPACE, isAbove ? top - SPACE - height : bottom + SPACE)}px`;
  panel.style.left = `${Math.max(SPACE, left + width > innerWidth ? right - width : left)}px`;
}

/** The panel of a button. */
export function Opened({ beside, onDone, onClose, children }: OpenedProps) {
  const panel = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = panel;
    const button = beside.current;
    if (current === null || button === null) return undefined;
    current.showPopover();
    put(current, button);
    current.querySelector<HTMLElement>('button, a')?.focus({ preventScroll: true });
    return () => {
      // before the panel goes: the focus would be nowhere then
      if (current.contains(document.activeElement)) button.focus({ preventScroll: true });
    };
  }, []);
  return (
    <div
      ref={panel}
      class="menu"
      popover="auto"
      onToggle={(event) => {
        if (event.newState === 'closed') onClose();
      }}
      onClick={(event) => {
        if (event.target instanceof Element && event.target.closest('button, a') !== null) onDone();
      }}
      onKeyDown={(event) => {
        if (event.key === 'ArrowDown' || event.key === 'ArrowUp') step(event);
      }}
    >
      {children}
    </div>
  );
}

/** The arrows lead through the panel too. */
function step(event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void {
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>('button, a')];
  const at = all.findIndex((each) => each === document.activeElement);
  event.preventDefault();
  all[(at + (event.key === 'ArrowDown' ? 1 : -1) + all.length) % all.length]?.focus();
}
