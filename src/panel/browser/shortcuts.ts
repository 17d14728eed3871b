/** Keys for people who use the page all day. They do nothing while something is typed. */

function isTyping(target: EventTarget | null): boolean {
  if (document.querySelector('dialog[open]') !== null) return true;
  return target instanceof HTMLElement && ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName);
}

function move(step: 1 | -1): void {
  const all = [...document.querySelectorAll<HTMLAnchorElement>('a[data-row]')];
  const current = all.findIndex((row) => row === document.activeElement);
  all[current < 0 ? 0 : Math.min(all.length - 1, Math.max(0, current + step))]?.focus();
}

/** Listens until the returned function is called. */
export function listen(toSearch: () => void): () => void {
  const acts: ReadonlyMap<string, () => void> = new Map([
    ['/', toSearch],
    ['j', () => move(1)],
    ['k', () => move(-1)],
  ]);
  function press(event: KeyboardEvent): void {
    const act = acts.get(event.key);
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault();
    act();
  }
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}
