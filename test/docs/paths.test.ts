/**
 * Every path that a page or a file of config/ names exists, and every link leads to a page and a heading.
 *
 * A path is a word that begins with src/, test/ or config/, a page of docs/, a word that has a slash and ends like one of our
 * files, or the name of a TypeScript file alone.
 * Words that begin with a slash, a tilde or a scheme are other machines' or the web's.
 */
import { existsSync, globSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pageOfCode } from '../../src/base/doc-pages.ts';
import { faults } from '../../src/base/fault.ts';
import { requestErrors } from '../../src/base/request-error.ts';
import { anchorsOf, linksOf, pages, proseOf, ROOT, shellBlocksOf, textOf } from './pages.ts';

const ROOTED = /(?<![\w./:~$}@-])(?:(?:src|test|config)\/[\w.*/-]*[\w*]|docs\/[\w/-]+\.md)/g;
const SLASHED = /(?<![\w./:~$}@<-])(?:\.{1,2}\/)?(?:[\w.-]+\/)+[\w-]+(?:\.[\w-]+)*\.(?:ts|md|json|ya?ml|sh|service|env|mjs)\b/g;
/** A file of ours by its name alone. */
const NAMED = /(?<![\w./:~$}@*<-])[\w-]+(?:\.[\w-]+)*\.ts\b/g;

function pathsIn(text: string): readonly string[] {
  return [...new Set([ROOTED, SLASHED, NAMED].flatMap((pattern) => [...text.matchAll(pattern)].map(([word]) => word)))];
}

const namesOfFiles: ReadonlySet<string> = new Set(globSync('{src,test,config}/**/*.ts', { cwd: ROOT }).map((file) => basename(file)));

/** Below the project's folder, the folder of the file that names it, or src/, test/, config/ and the chart's folder, which their own files leave out. A name alone: anywhere. */
function isThere(path: string, from: string): boolean {
  if (!path.includes('/')) return namesOfFiles.has(path);
  const candidates = [
    path,
    join(dirname(from), path),
    ...['src', 'test', 'config', 'config/helm', 'config/helm/tally'].map((folder) => join(folder, path)),
  ].map(normalize);
  return candidates.some((each) => (each.includes('*') ? globSync(each, { cwd: ROOT }).length > 0 : existsSync(`${ROOT}${each}`)));
}

function missingIn(file: string, text: string): readonly string[] {
  return pathsIn(text)
    .filter((path) => !isThere(path, file))
    .map((path) => `${file}: ${path}`);
}

function filesBelow(pattern: string): readonly string[] {
  return globSync(pattern, { cwd: ROOT }).toSorted();
}

describe('paths', () => {
  it.each([...pages(), 'CHANGELOG.md'])('%s names paths that exist', (page) => {
    const text = textOf(page);
    // in commands, docs/ begins keys of objects as well
    const commands = shellBlocksOf(text)
      .flat()
      .filter((command) => /(?<![\w./])(?:src|test|config)\//.test(command))
      .join('\n');
    expect([...missingIn(page, proseOf(text)), ...missingIn(page, commands)]).toEqual([]);
  });

  it('are found where they are planted', () => {
    expect(
      missingIn('README.md', 'see src/nowhere.ts, `config/none/`, domain/lost.ts and gone.ts; https://a/b.ts and /etc/x.env are not ours'),
    ).toEqual(['README.md: src/nowhere.ts', 'README.md: config/none', 'README.md: domain/lost.ts', 'README.md: gone.ts']);
  });

  it('of config, compose.yaml and Dockerfile exist', () => {
    const files = [...filesBelow('config/**/*.*'), 'compose.yaml', 'Dockerfile', '.ci/run'];
    const text = (file: string): string => (/\.(?:json|ts)$/.test(file) ? '' : textOf(file).replaceAll('../shared/services', ''));
    expect(files.flatMap((file) => missingIn(file, text(file)))).toEqual([]);
  });
});

describe('links', () => {
  it.each(pages())('of %s lead to pages and headings', (page) => {
    const broken = linksOf(textOf(page)).filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : normalize(join(dirname(page), path));
      if (!existsSync(`${ROOT}${target}`)) return true;
      return anchor !== undefined && !anchorsOf(textOf(target)).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  it('of config/monitoring lead to pages and headings', () => {
    const files = ['config/monitoring/alerts.yaml', 'config/monitoring/dashboard.json'];
    const links = files.flatMap((file) => [...textOf(file).matchAll(/(docs\/[\w/-]+\.md)#([\w-]+)/g)]);
    expect(links.length).toBeGreaterThan(0);
    const broken = links.filter(([, page = '', anchor = '']) => !existsSync(`${ROOT}${page}`) || !anchorsOf(textOf(page)).has(anchor));
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  it('lead from docs/README.md to every page for readers', () => {
    const linked = new Set(linksOf(textOf('docs/README.md')).map((link) => `docs/${link.split('#')[0]}`));
    expect(pages().filter((page) => !/^(README|docs\/README|docs\/internals\/.*)\.md$|^README/.test(page) && !linked.has(page))).toEqual(
      [],
    );
  });
});

it('the texts of src name pages and headings that exist', () => {
  const named = filesBelow('src/**/*.ts').flatMap((file) => [...textOf(file).matchAll(/docsPage\('(docs\/[\w/-]+\.md)#([\w-]+)'\)/g)]);
  expect(named.length).toBeGreaterThan(2);
  expect(named.filter(([, page = '', anchor = '']) => !anchorsOf(textOf(page)).has(anchor)).map(([text]) => text)).toEqual([]);
});

it('each code of an error has a place on the page that it names', () => {
  const anchors = anchorsOf(textOf('docs/reference/error-codes.md'));
  const codes = [...Object.keys(faults), ...Object.keys(requestErrors)];
  expect(codes.filter((code) => !anchors.has(pageOfCode(code).split('#')[1] ?? ''))).toEqual([]);
});
