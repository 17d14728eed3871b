import { expect, it } from 'vitest';
import { withoutPasswords } from '../../src/domain/passwords.ts';

it.each([
  ['https://tally:secret@index:9200', 'https://tally:***@index:9200'],
  ['https://index:9200', 'https://index:9200'],
  ['https://token@index', 'https://***@index'],
  ['https://:secret@index', 'https://:***@index'],
  ['https://tally:p@ss/w:rd,x@index', 'https://tally:***@index'],
  ['https://a:one@h1,https://h2, http://b:two@h3', 'https://a:***@h1,https://h2, http://b:***@h3'],
  ['no connection to https://a:one@h1:9200 (ECONNREFUSED)', 'no connection to https://a:***@h1:9200 (ECONNREFUSED)'],
  ['sqlite:/data/me@home.sqlite', 'sqlite:/data/me@home.sqlite'],
  ['', ''],
])('%s is shown as %s', (text, masked) => {
  expect(withoutPasswords(text)).toBe(masked);
});
