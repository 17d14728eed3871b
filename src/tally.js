#!/usr/bin/env -S node --max-semi-space-size=16
/**
 * The program's first file: it says which Node is needed, in a language that every Node can read, and starts main.ts.
 *
 * The first line's option keeps V8 from giving 128 MiB to objects that are younger than a message in hand; it can only be
 * given before the start, so the npm scripts and config/systemd/tally.service say the same.
 */
var needed = 24;
var major = Number(process.versions.node.split('.')[0]);

if (major < needed) {
  process.stderr.write(
    'tally: Tally needs Node ' + needed + ' or later, and this is Node ' + process.versions.node + '. See https://nodejs.org.\n',
  );
  process.exitCode = 78;
} else {
  void import('./main.ts');
}
