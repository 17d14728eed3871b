/** How the program was called, for texts that contain commands to type. */

interface Call {
  /** process.argv[1]. */
  readonly script: string | undefined;
  /** The variable npm_execpath, which npm and npx set. */
  readonly npmExecPath: string | undefined;
}

/** Returns `tally` for the global binary, `npx tally` under npm and npx, otherwise the call of the script itself. */
export function programOf({ script = '', npmExecPath }: Call): string {
  if (npmExecPath !== undefined) return 'npx tally';
  if (script === '' || /(^|[\\/])tally$/.test(script)) return 'tally';
  return `node ${script}`;
}
