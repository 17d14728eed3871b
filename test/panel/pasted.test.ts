import { describe, expect, it } from 'vitest';
import { locationOf } from '../../src/domain/search/location.ts';
import { copiedCommand, copiedKey, copiedLines, copiedUri } from '../../src/panel/browser/copied.ts';

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

describe('what is copied', () => {
  it('is the key, the URI and a command', () => {
    expect(copiedKey('2026/cat.jpg')).toEqual({ text: '2026/cat.jpg', isJson: false });
    expect(copiedUri('photos', 'a b')).toEqual({ text: 's3://photos/a b', isJson: false });
    expect(copiedCommand('photos', "it's $(a)")).toEqual({ text: String.raw`aws s3 cp 's3://photos/it'\''s $(a)' .`, isJson: false });
  });

  it('is a JSON string where control characters could act on a terminal', () => {
    for (const copied of [copiedKey('a\nb'), copiedUri('photos', 'a\nb'), copiedCommand('photos', 'a\u001b[2Jb')]) {
      expect(copied.isJson).toBe(true);
      expect(copied.text).not.toMatch(/\p{Cc}/u);
    }
    expect(JSON.parse(copiedKey('a\n"b').text)).toBe('a\n"b');
  });

  it('is lines, with JSON strings where it must be', () => {
    expect(copiedLines([copiedKey('a'), copiedKey('b\nc')])).toMatchObject({ text: 'a\n"b\\nc"', isJson: true });
    expect(copiedLines([copiedKey('a')])).toEqual({ text: 'a', isJson: false, note: 'Copied lines: 1.' });
  });
});
