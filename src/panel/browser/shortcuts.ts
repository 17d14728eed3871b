/** Keys for people who use the page all day. They do nothing while something is typed, and can be switched off. */
import { remembered } from './observed.ts';
import { copy } from './parts.tsx';

export const shortcuts = remembered('tally-shortcuts', ['on', 'off']);

export const shortcutTexts = [
  ['/', 'go to the search box'],
  ['j, k', 'next, previous row'],
  ['Enter, e', 'open the row: on the page of an object index and S3 are explained'],
  ['c', 'copy what the row is about'],
  ['?', 'show these keys'],
] as const;

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  // nothing is typed into the box that selects a row
  if (target instanceof HTMLInputElement && target.type === 'checkbox') return document.querySelector('dialog[open]') !== null;
  return ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName) || document.querySelector('dialog[open]') !== null;
}

function rows(): readonly HTMLAnchorElement[] {
  return [...document.querySelectorAll<HTMLAnchorElement>('a[data-row]')];
}

/** Whether the focus is on the row, or on one of its buttons. */
function isCurrent(row: HTMLAnchorElement): boolean {
  const { activeElement } = document;
  return row === activeElement || (activeElement !== null && row.closest('tr')?.contains(activeElement) === true);
}

function move(step: 1 | -1): void {
  const all = rows();
  const current = all.findIndex((row) => isCurrent(row));
  all[current < 0 ? 0 : Math.min(all.length - 1, Math.max(0, current + step))]?.focus();
}

function currentRow(): HTMLAnchorElement | undefined {
  return rows().find((row) => isCurrent(row));
}

/** Listens until the returned function is called. */
export function listen({ toSearch, toHelp }: { readonly toSearch: () => void; readonly toHelp: () => void }): () => void {
  const acts: Readonly<Record<string, () => void>> = {
    '/': toSearch,
    '?': toHelp,
    j: () => move(1),
    k: () => move(-1),
    e: () => currentRow()?.click(),
    c: () => {
      const { copy: text, json } = currentRow()?.dataset ?? {};
      if (text !== undefined) void copy({ text, isJson: json === 'true' });
    },
  };
  function press(event: KeyboardEvent): void {
    if (shortcuts.read() === 'off' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const act = Object.hasOwn(acts, event.key) ? acts[event.key] : undefined;
    if (act === undefined) return;
    event.preventDefault();
    act();
  }
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}
