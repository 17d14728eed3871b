/** The notices of the packages that the bundle contains, which their licenses ask to keep. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const manifestSchema = z.object({ name: z.string(), version: z.string(), license: z.string().optional() });
const NOTICE = /^(licen[cs]e|notice|copying)/i;

export interface PackageName {
  readonly name: string;
  readonly version: string;
}

/** The name and version of the package in this folder. */
export async function packageIn(folder: string): Promise<z.infer<typeof manifestSchema>> {
  return manifestSchema.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
}

/** The text for these folders of packages, which are relative to the root. */
export async function noticesOf(folders: readonly string[], root: string): Promise<string> {
  const notices = await Promise.all(folders.map((folder) => noticeOf(join(root, folder))));
  return `${notices.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

async function noticeOf(folder: string): Promise<string> {
  const { name, version, license } = await packageIn(folder);
  const files = (await readdir(folder)).filter((file) => NOTICE.test(file)).toSorted();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return [`${name} ${version} (${license ?? 'see its notice'})`, ...texts.map((text) => text.trim())].join('\n\n');
}
