/** A browser for tests: opens the address of its argument, and follows where it leads. */
const [, , address = ''] = process.argv;
await fetch(address);
