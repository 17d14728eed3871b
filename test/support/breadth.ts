/** True in `npm run test:long`, where tests play all that they can, and not what stands for it. */
export const isLong = process.env['TALLY_TEST_LONG'] === '1';
