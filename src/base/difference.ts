/** The difference between two documents, for people. Terminals and browsers show it, so this file depends on nothing. */

/** A document as lines, of which only those that differ from the other document are marked, like `diff` shows it. `undefined`: nothing is there. */
export function differenceOf(before: unknown, after: unknown): readonly string[] {
  const [from, to] = [before, after].map((document) => (document === undefined ? [] : JSON.stringify(document, undefined, 2).split('\n')));
  return linesOf(from ?? [], to ?? []);
}

/** Lines that are in both documents at their beginning and end are not marked. Documents of AWS are small, so no better difference is needed. */
function linesOf(from: readonly string[], to: readonly string[]): readonly string[] {
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start += 1;
  let end = 0;
  while (end < from.length - start && end < to.length - start && from.at(-1 - end) === to.at(-1 - end)) end += 1;
  const marked = (lines: readonly string[], mark: string): readonly string[] => lines.map((line) => `${mark} ${line}`);
  return [
    ...marked(from.slice(0, start), ' '),
    ...marked(from.slice(start, from.length - end), '-'),
    ...marked(to.slice(start, to.length - end), '+'),
    ...marked(to.slice(to.length - end), ' '),
  ];
}
