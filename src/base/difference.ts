/** The difference between two documents, for people. The panel imports this file too, so it depends on nothing. */

/** Returns the lines of both documents like `diff`: `-` marks removed lines and `+` marks added ones. `undefined`: there is no such document. */
export function differenceOf(before: unknown, after: unknown): readonly string[] {
  const [from, to] = [before, after].map((document) => (document === undefined ? [] : JSON.stringify(document, undefined, 2).split('\n')));
  return linesOf(from ?? [], to ?? []);
}

/** Leaves the lines unmarked that both documents have in common at their beginning and at their end, and marks all others. That suffices because AWS's documents are small. */
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
