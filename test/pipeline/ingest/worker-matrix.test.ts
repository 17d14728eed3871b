/**
 * The fault matrix of several workers on a virtual clock: each fault beside exact events and looks that it does not concern,
 * with one worker, with three whose circuits differ, and with a restart of all workers every five minutes. A third of the rows;
 * worker-matrix.long.ts plays all.
 */
import { describe, expect, it } from 'vitest';
import { expectMatrixRow, matrixForms } from '../../support/worlds/matrix-forms.ts';
import { portFaults } from '../../support/worlds/port-faults.ts';

/** Every fault plays in every third form: neighbours in the list, which concern the same, play in different ones. */
const SHARE = 3;
const rows = matrixForms.map((form, place) => ({ ...form, faults: portFaults.filter((_, index) => (index + place) % SHARE === 1) }));

it('leaves no fault out', () => {
  const played = new Set(rows.flatMap(({ faults }) => faults.map(({ name }) => name)));
  expect(portFaults.filter(({ name }) => !played.has(name))).toEqual([]);
});

describe.each(rows)('$name', ({ faults, ...form }) => {
  it.each(faults)('what is not concerned is indexed soon, and in the end all is: $name', async (fault) => {
    await expectMatrixRow(fault, form);
  });
});
