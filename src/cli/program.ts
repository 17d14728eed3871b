/** How the program was called, for texts that contain commands to type. */
import { shellWord, type TypedProgram } from '../domain/commands.ts';

interface Call {
  /** process.argv[1]. */
  readonly script: string | undefined;
  /** The variable npm_execpath, which npm and npx set. */
  readonly npmExecPath: string | undefined;
  /** The container in which it runs, if it was called from outside of it. */
  readonly container?: string | undefined;
}

/**
 * Returns `docker exec CONTAINER tally` if it was called so, `npx tally` under npm and npx, `tally` for the global binary,
 * otherwise the call of the script itself.
 */
export function programOf({ script = '', npmExecPath, container }: Call): string {
  if (container !== undefined) return `docker exec ${container} tally`;
  const isGlobal = /(^|[\\/])tally$/.test(script) && !/[\\/](?:node_modules[\\/]\.bin|_npx)[\\/]/.test(script);
  if (isGlobal || script === '') return 'tally';
  return npmExecPath === undefined ? `node ${shellWord(script)}` : 'npx tally';
}

interface ContainerFacts {
  /** Whether the file exists that Docker puts into its containers. */
  readonly isDocker: boolean;
  readonly hostname: string;
  readonly pid: number;
  readonly ppid: number;
  readonly isServing: boolean;
}

/**
 * Returns the name by which `docker exec` reaches the container of this process. It is known if Docker chose the name and the
 * process was started from outside: its parent is not in the container then. The first process of a container leaves nothing
 * to reach when it ends, unless it serves.
 */
export function containerOf({ isDocker, hostname, pid, ppid, isServing }: ContainerFacts): string | undefined {
  const isFromOutside = ppid === 0 && (pid !== 1 || isServing);
  return isDocker && isFromOutside && /^[0-9a-f]{12}$/.test(hostname) ? hostname : undefined;
}

/** These do not ask a registry. */
const WITHOUT_REGISTRY: ReadonlySet<string> = new Set(['serve', 'config', 'login', 'iam-policy', 'queue', 'state']);

/** Returns how the program must be typed to reach the same registry: with `--registry` where that was typed. */
export function typedProgram(program: string, registryUrl: string | undefined): TypedProgram {
  if (registryUrl === undefined) return () => program;
  const reaching = `${program} --registry ${shellWord(registryUrl)}`;
  return (command) => (WITHOUT_REGISTRY.has(command) ? program : reaching);
}
