import { describe, expect, it } from 'vitest';
import { copiesOf, keyParts, visibleText } from '../../src/panel/browser/words.ts';
import { locationOf } from '../../src/search/location.rules.ts';

it.each([
  [' ', '\\u{20}'],
  ['\u00a0\n', '\\u{a0}\\u{a}'],
  [' a ', ' a '],
  ['a\u200bb', 'a\\u{200b}b'],
])('%j is shown as %s, so that a link with it can be seen', (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

it.each([
  ['a/b/c.txt', 'a/b/', 'c.txt'],
  ['c.txt', '', 'c.txt'],
  ['a/b/', 'a/', 'b/'],
  ['a//b', 'a//', 'b'],
  ['/', '', '/'],
])('of the key %j the folder is %j and the name is %j: the list may cut the folder, and never the name', (key, folder, name) => {
  expect(keyParts(key)).toEqual([folder, name]);
});

describe('a pasted address', () => {
  it.each([
    ['s3://photos/2026/cat.jpg', '2026/cat.jpg'],
    ['  s3a://photos/a b\n', 'a b'],
    ['arn:aws:s3:::photos/2026/cat.jpg', '2026/cat.jpg'],
    ['arn:aws-cn:s3:::photos/a:b', 'a:b'],
    ['https://photos.s3.eu-west-1.amazonaws.com/2026/c%20at.jpg', '2026/c at.jpg'],
    ['https://s3.eu-west-1.amazonaws.com/photos/2026/cat.jpg', '2026/cat.jpg'],
    ['https://eu-west-1.console.aws.amazon.com/s3/object/photos?region=eu-west-1&prefix=2026/cat.jpg', '2026/cat.jpg'],
  ])('%j names an object', (text, key) => {
    expect(locationOf(text.trim())).toEqual({ bucket: 'photos', key });
  });

  it.each(['cat', 'https://example.com/photos/cat.jpg', 'https://photos.s3.amazonaws.com/%ff', 'https://', 'javascript:alert(1)'])(
    '%j names none',
    (text) => {
      expect(locationOf(text.trim())).toBeUndefined();
    },
  );
});

const copied = (bucket: string, key: string) => copiesOf(bucket, key).map(([, text]) => text);

describe('what is copied', () => {
  it('is the key, the URI and a command', () => {
    expect(copied('photos', "it's $(a)")).toEqual([
      "it's $(a)",
      "s3://photos/it's $(a)",
      String.raw`aws s3 cp 's3://photos/it'\''s $(a)' .`,
    ]);
  });

  it('is a JSON string where control characters could act on a terminal', () => {
    const texts = copied('photos', 'a\n\u001b[2J"b');
    expect(texts.join('')).not.toMatch(/\p{Cc}/u);
    expect(texts).toEqual([
      String.raw`"a\n\u001b[2J\"b"`,
      String.raw`"s3://photos/a\n\u001b[2J\"b"`,
      String.raw`aws s3 cp $'s3://photos/a\x0a\x1b[2J"b' .`,
    ]);
  });
});
