import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { slotsFor, type Slots } from '../../src/panel/browser/slots.ts';

const none: ReadonlySet<number> = new Set();
const rowsFrom = (first: number, count: number): readonly number[] => Array.from({ length: count }, (_, at) => first + at);

it('a row that stays keeps its element, and a row that comes takes one that is left over', () => {
  const slots = slotsFor(rowsFrom(8, 12), slotsFor(rowsFrom(0, 12), new Map(), none), none);
  expect([...slots]).toEqual([...rowsFrom(8, 4).map((row) => [row, row]), ...rowsFrom(12, 8).map((row, at) => [row, at])]);
});

it('after a jump the elements stand as before, so that none is moved', () => {
  const before = slotsFor(rowsFrom(8, 12), slotsFor(rowsFrom(0, 12), new Map(), none), none);
  expect([...slotsFor(rowsFrom(5_000, 12), before, none).values()]).toEqual([...before.values()]);
});

it('the element of a row that a person works in shows no other row', () => {
  const before = slotsFor(rowsFrom(0, 4), new Map(), none);
  expect([...slotsFor(rowsFrom(100, 4), before, new Set([2])).values()]).toEqual([0, 1, 3, 4]);
});

it('a slot that rows had long ago is given again', () => {
  // Bug: slots only rose, so that a list that was long again and again had ever higher ones. Fix: the lowest that no row has
  const short = slotsFor(rowsFrom(28, 2), slotsFor(rowsFrom(0, 30), new Map(), none), none);
  const long = slotsFor(rowsFrom(0, 30), short, none);
  expect(Math.max(...long.values())).toBeLessThan(30);
});

it('never gives an element to two rows, and makes no more than are drawn at the same time', () => {
  const move = fc.record({ first: fc.nat(200), count: fc.integer({ min: 1, max: 30 }) });
  fc.assert(
    fc.property(fc.array(move, { maxLength: 30 }), (moves) => {
      let slots: Slots = new Map();
      let most = 0;
      for (const { first, count } of moves) {
        const rows = rowsFrom(first, count);
        slots = slotsFor(rows, slots, none);
        most = Math.max(most, count);
        expect([...slots.keys()]).toEqual(rows);
        expect(new Set(slots.values()).size).toBe(count);
        expect(Math.max(...slots.values())).toBeLessThan(2 * most);
      }
    }),
  );
});
