/** Phrasings that people at three in the morning stumble over. Each has a plain replacement. */
import { globSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ROOT, textOf } from './pages.ts';

/** What is read. */
const ROOTS: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  'docs/**/*.md',
  'src/**/*.{ts,js}',
  'config/**/*.{yaml,sh,service,env}',
  'compose.yaml',
  'Dockerfile',
];

/** Each phrasing, with what to write instead. */
const BANNED: readonly (readonly [RegExp, string])[] = [
  [/\banew\b/i, 'again'],
  [/\bthe very\b/i, 'exactly the, the same'],
  [/\bthat very\b/i, 'exactly that'],
  [/\b(?:what|which|that) is no\b(?! longer)/i, 'what is not a …, anything but a …'],
  [/\bthat are no\b(?! longer)/i, 'that are not …'],
  [/\btells? (?:of|so)\b/i, 'reports'],
  [/\bsays? nothing of\b/i, 'does not mention'],
  [/\bknows? nothing of\b/i, 'does not know, does not depend on'],
  [/\bnobody fores(?:aw|ees)\b/i, 'unexpected'],
  [/\bfor want of\b/i, 'because … is missing'],
  [/\bby (?:it|them)self alone\b/i, 'alone'],
  [/\bsave for\b/i, 'except'],
  [/\bthereof\b|\bthereupon\b|\bwhereupon\b|\bhitherto\b|\bhence\b|\balbeit\b/i, 'a plain word'],
  [/\bthrice\b/i, 'three times'],
  [/\bwould else\b/i, 'would otherwise'],
  [/\bat (?:his|her) (?:work|task)\b/i, 'working'],
  [/\bfor ever\b/i, 'forever, permanently'],
  [/\bin vain\b/i, 'without success'],
  [/\bwhoso(?:ever)?\b|\ball the while\b|\bat the least\b/i, 'the caller, throughout, at least'],
  [/\bmade harmless\b/i, 'escaped'],
  [/\bowing to\b|\blest\b|\bwhilst\b|\bamongst\b|\bupon\b|\bthere(?:in|by|from)\b|\bthus\b/i, 'a plain word'],
];

function bannedIn(text: string): readonly string[] {
  return text.split('\n').flatMap((line, index) =>
    BANNED.flatMap(([phrasing, instead]) => {
      const found = phrasing.exec(line)?.[0];
      return found === undefined ? [] : [`${index + 1}: “${found}” (${instead}): ${line.trim()}`];
    }),
  );
}

describe('plain English', () => {
  const files = globSync([...ROOTS], { cwd: ROOT }).toSorted();

  it.each(files)('%s has no phrasing that stops its reader', (file) => {
    expect(bannedIn(textOf(file))).toEqual([]);
  });

  it('finds what is planted, and leaves plain sentences alone', () => {
    expect(bannedIn('A queue is made anew.')).toHaveLength(1);
    expect(bannedIn('It tries in vain, for ever.')).toHaveLength(2);
    expect(bannedIn('Nobody is asked, and whoever was told goes on.')).toEqual([]);
    expect(bannedIn('The object that is no longer there has its own tombstone.')).toEqual([]);
  });
});
