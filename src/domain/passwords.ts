/**
 * The text with the passwords of its URLs masked: `https://user:***@host`. Everything before the last `@` of a URL counts
 * as user and password, because a password that was not percent-encoded may contain any character, even commas and slashes.
 */
export function withoutPasswords(text: string): string {
  return text
    .split(/(,(?=\s*https?:\/\/))/)
    .map((part) =>
      part.replaceAll(/:\/\/([^\s:@/]*)(:?)\S*@/g, (_, user: string, colon: string) => `://${colon === '' ? '' : `${user}:`}***@`),
    )
    .join('');
}
