/** Every row of the fault matrix of several workers: each fault in each form. TALLY_TEST_MATRIX_OUT names a file for the figures. */
import { writeFileSync } from 'node:fs';
import { afterAll, describe, it } from 'vitest';
import { expectMatrixRow, matrixForms } from '../support/worlds/matrix-forms.ts';
import { portFaults } from '../support/worlds/port-faults.ts';

const figures: object[] = [];

describe.each(matrixForms)('$name', (form) => {
  it.each(portFaults)('what is not concerned is indexed soon, and in the end all is: $name', async (fault) => {
    figures.push({ fault: fault.name, form: form.name, ...(await expectMatrixRow(fault, form)) });
  });
});

afterAll(() => {
  const file = process.env['TALLY_TEST_MATRIX_OUT'];
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(figures, undefined, 1)}\n`);
});
