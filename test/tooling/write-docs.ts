/** `npm run docs`: writes the pages that are made of the code. */
import { writeFileSync } from 'node:fs';
import { apiPage } from './api-page.ts';

/** The pages by their paths in the repository. */
export const pages: Readonly<Record<string, () => string>> = {
  'docs/api.md': apiPage,
};

if (import.meta.main) {
  for (const [path, page] of Object.entries(pages)) writeFileSync(new URL(`../../${path}`, import.meta.url), page());
}
