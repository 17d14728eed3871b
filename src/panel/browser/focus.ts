/** Where the focus goes when what has it disappears: browsers leave it nowhere, and the next Tab begins at the top of the page. */

/** Whether nothing has the focus. */
function isLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

/** Moves the focus to what is open: the topmost dialog, or the content of the page. */
function focusWhatIsOpen(): void {
  const dialog = [...document.querySelectorAll<HTMLElement>('dialog[open]')].at(-1);
  if (dialog !== undefined) dialog.tabIndex = -1;
  (dialog ?? document.querySelector<HTMLElement>('#content'))?.focus({ preventScroll: true });
}

/** Watches until the returned function is called. An element that had the focus and was removed gives it to what is open. */
export function keepFocus(): () => void {
  let last: Element | null = null;
  const note = (): void => {
    last = document.activeElement;
  };
  const changed = new MutationObserver(() => {
    if (isLost() && last !== null && !last.isConnected) focusWhatIsOpen();
  });
  addEventListener('focusin', note);
  changed.observe(document.body, { childList: true, subtree: true });
  return () => {
    changed.disconnect();
    removeEventListener('focusin', note);
  };
}

/** Returns the focus to an element that lost it, unless something else has it by now. */
export function restoreFocus(element: Element | null): void {
  if (isLost() && element instanceof HTMLElement && element.isConnected) element.focus({ preventScroll: true });
}
