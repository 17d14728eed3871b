/** Which element of a long list shows which row: elements of rows that went out of sight show those that came. */

/** The slot of each row that is drawn, in the order of the rows. A slot is the key of an element. */
export type Slots = ReadonlyMap<number, number>;

/**
 * The slots of these rows. A row that was drawn keeps its slot, and the others take those that are left over, in order, so that of a
 * jump over the whole list no element is moved. What is `inUse` is given to no other row: it has the focus, or its menu is open.
 */
export function slotsFor(rows: readonly number[], before: Slots, inUse: ReadonlySet<number>): Slots {
  const wanted = new Set(rows);
  const free = [...before].flatMap(([row, slot]) => (wanted.has(row) || inUse.has(row) ? [] : [slot]));
  const taken = new Set(before.values());
  let fresh = 0;
  // the lowest that no row has: numbers that only rose would have no bound
  const next = (): number => {
    while (taken.has(fresh)) fresh += 1;
    return fresh++;
  };
  return new Map(rows.map((row) => [row, before.get(row) ?? free.shift() ?? next()]));
}
