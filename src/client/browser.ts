/** Opening the browser of the person at this machine. */
import { spawn } from 'node:child_process';

type Environment = Readonly<Record<string, string | undefined>>;

/** The browser of such a session is on another machine, to which 127.0.0.1 is itself. */
const REMOTE = ['SSH_CONNECTION', 'SSH_TTY', 'CODESPACES'];
const DISPLAYS = ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME'];

/** Opens the address; resolves with false if that failed, and not before the program that opens it has ended. */
export type OpenBrowser = (address: string) => Promise<boolean>;

/** Returns how a browser is opened here; undefined where, as far as can be seen, there is none on this machine. */
export function browserOf(env: Environment, platform: NodeJS.Platform): OpenBrowser | undefined {
  const isSet = (name: string): boolean => (env[name] ?? '') !== '';
  if (REMOTE.some(isSet)) return undefined;
  const named = (env['BROWSER'] ?? '').split(/\s+/).filter((part) => part !== '');
  if (named.length > 0)
    return (address) => run(named.includes('%s') ? named.map((part) => (part === '%s' ? address : part)) : [...named, address]);
  if (platform === 'darwin') return (address) => run(['open', address]);
  if (platform === 'win32') return (address) => run(['rundll32', 'url.dll,FileProtocolHandler', address]);
  return DISPLAYS.some(isSet) ? (address) => run(['xdg-open', address]) : undefined;
}

async function run([program = '', ...args]: readonly string[]): Promise<boolean> {
  // no shell: the address is one argument, whatever it contains
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
