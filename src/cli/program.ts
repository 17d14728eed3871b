/** How the program was called, for texts that contain commands to type. */
import packageJson from '../../package.json' with { type: 'json' };
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
 * Returns how a person reaches this copy again: `docker exec CONTAINER tally` from outside of a container, `tally` where it is
 * installed for the machine, npx with the full name where npm keeps it for a folder or only for now, and npm's script in a
 * checkout. Otherwise it is the call of the script itself. The bare name belongs to another package of npm, so npx never gets it.
 */
export function programOf({ script = '', npmExecPath, container }: Call): string {
  if (container !== undefined) return `docker exec ${container} tally`;
  if (/[\\/]node_modules[\\/]\.bin[\\/]tally$/.test(script)) return `npx ${packageJson.name}`;
  if (script === '' || /(^|[\\/])tally$/.test(script)) return 'tally';
  const isNpmScript = npmExecPath !== undefined && /[\\/]src[\\/]tally\.js$/.test(script);
  return isNpmScript ? 'npm run -s tally --' : `node ${shellWord(script)}`;
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
const WITHOUT_REGISTRY: ReadonlySet<string> = new Set(['config', 'login', 'iam-policy', 'queue']);

/**
 * Returns how the program must be typed to reach the same registry: with `--registry` where that was typed. A container serves by
 * its own arguments, and `docker exec` reaches none that has ended because a setting is missing.
 */
export function typedProgram(program: string, registryUrl: string | undefined): TypedProgram {
  const serving = program.startsWith('docker exec ') ? 'tally' : program;
  const reaching = registryUrl === undefined ? program : `${program} --registry ${shellWord(registryUrl)}`;
  return (command) => {
    if (command === 'serve') return serving;
    return WITHOUT_REGISTRY.has(command) ? program : reaching;
  };
}
