/**
 * The fault matrix of several workers on a virtual clock: each fault beside exact and inexact events that it does not concern,
 * with one worker, with three whose circuits differ, and with a restart of all workers every five minutes. Each fault that
 * is unlike the others, in one of these forms; `npm run test:long` plays each in each.
 */
import { describe, it } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { expectMatrixRow, matrixForms } from '../support/worlds/matrix-forms.ts';
import { portFaults } from '../support/worlds/port-faults.ts';

const apart = portFaults.filter(({ isVariant }) => isVariant !== true);
/** Each plays in one form: neighbours in the list, which concern the same, in different ones, and the many buckets with one worker, where they cost least. */
const rows = matrixForms.map((form, place) => ({
  ...form,
  faults: isLong ? portFaults : apart.filter((_, index) => (index + 2) % matrixForms.length === place),
}));

describe.each(rows)('$name', ({ faults, ...form }) => {
  it.each(faults)('what is not concerned is indexed soon, and in the end all is: $name', async (fault) => {
    await expectMatrixRow(fault, form);
  });
});
