/** A browser for tests, as a program: hands the address of its argument to the test, and ends when the last page was shown. */
const [, , address = ''] = process.argv;
await fetch(process.env['BROWSER_DRIVER'] ?? '', { method: 'POST', body: address });
