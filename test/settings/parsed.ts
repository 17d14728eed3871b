/** What an environment is parsed to. */
import { parseSettings, type ReadFile, type Settings } from '../../src/settings/settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export const noFiles: ReadFile = () => {
  throw Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
};

export function settingsOf(environment: Environment, readFile = noFiles): Settings {
  const parsed = parseSettings(environment, readFile);
  if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
  return parsed.settings;
}

export function mistakesOf(environment: Environment, readFile = noFiles): readonly string[] {
  const parsed = parseSettings(environment, readFile);
  return parsed.ok ? [] : parsed.mistakes;
}
