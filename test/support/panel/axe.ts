/** What axe finds in the panel: on a large light screen and on a small dark one, both by all of its rules. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { isLong } from '../breadth.ts';
import { overflowOf } from '../worlds/panel.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
interface Screen {
  readonly title: string;
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: 'light' | 'dark';
}
const LARGE: Screen = { title: 'large and light', viewport: { width: 1_440, height: 900 }, colorScheme: 'light' };
const SMALL: Screen = { title: 'small and dark', viewport: { width: 390, height: 844 }, colorScheme: 'dark' };
/** 1,440 × 900 pixels at 200 %. */
const ZOOMED: Screen = { title: 'at 200 %', viewport: { width: 720, height: 450 }, colorScheme: 'dark' };

/**
 * What is cut off there: text that its element hides without dots, and without a place where it is whole. What the eye does not
 * see at all is not cut.
 */
const CUT = `[...document.querySelectorAll('main *, dialog *, .rail *')].filter((element) => {
  const { overflowX, textOverflow, clipPath } = getComputedStyle(element);
  const hides = overflowX === 'hidden' || overflowX === 'clip';
  return hides && textOverflow !== 'ellipsis' && clipPath === 'none' && element.clientWidth > 1
    && element.scrollWidth > element.clientWidth + 1 && element.checkVisibility();
}).map((element) => element.outerHTML.slice(0, 200))`;
/** How far an open dialog is larger than the screen without a way to scroll to its end, or out of its middle. */
const BEYOND = `(() => {
  const box = document.querySelector('dialog[open]')?.getBoundingClientRect();
  return box === undefined ? 0 : Math.max(0, -box.top, -box.left, box.bottom - innerHeight, box.right - innerWidth,
    Math.abs(box.top + box.bottom - innerHeight) - 2);
})()`;

/** Resolves when no colour is changing any more. */
const STILL = `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(
  Promise.allSettled(document.getAnimations().map(({ finished }) => finished)).then(() => undefined)))))`;

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/**
 * What is wrong with what is shown, each with the name: what axe finds, and what is wider than the small screen or one of 200 %, or cut off there.
 * Large and small have different layouts, light and dark different colours: two looks show all four. What is shown has one of
 * them each day, by its name, and both in `npm run test:long`; parts and colours are those of other pages too. `within`: of an
 * open dialog only itself is judged, since nothing else can be used meanwhile, and the page has been judged without it.
 */
export async function findingsOf(page: Page, name: string, within: 'html' | 'dialog' = 'html'): Promise<readonly string[]> {
  if (await page.evaluate<boolean>(`typeof axe === 'undefined'`)) await page.evaluate(AXE);
  const judged = isLong ? [LARGE, SMALL] : [[LARGE, SMALL][name.length % 2]];
  const found: string[] = [];
  for (const screen of [LARGE, SMALL, ZOOMED]) {
    const isJudged = judged.includes(screen);
    if (screen === LARGE && !isJudged) continue;
    await showOn(page, screen);
    if (isJudged) found.push(...(await look(page, `${name}, ${screen.title}`, within)));
    if (screen !== LARGE) found.push(...(await cutOn(page, screen)).map((fault) => `${name}: ${fault}`));
  }
  await showOn(page, LARGE);
  return found;
}

async function showOn(page: Page, { viewport, colorScheme }: Screen): Promise<void> {
  await page.setViewportSize(viewport);
  // a colour that is changing is no colour to judge
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.evaluate(STILL);
}

async function cutOn(page: Page, { viewport: { width } }: Screen): Promise<readonly string[]> {
  const overflow = await overflowOf(page);
  const beyond = await page.evaluate<number>(BEYOND);
  return [
    ...(overflow > 0 ? [`${overflow} pixels wider than a screen of ${width}`] : []),
    ...(beyond > 0 ? [`the dialog is ${beyond} pixels beyond a screen, or out of its middle, of ${width}`] : []),
    ...(await page.evaluate<readonly string[]>(CUT)).map((html) => `cut off at ${width}: ${html}`),
  ];
}

async function look(page: Page, name: string, within: string): Promise<string[]> {
  const [rules, violations] = await page.evaluate<readonly [number, readonly Violation[]]>(
    `axe.run('${within}').then(({ passes, violations }) => [passes.length + violations.length, violations])`,
  );
  // without an element to judge axe finds nothing either
  if (rules === 0) return [`${name}: axe had nothing to judge`];
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${name}: ${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
}
