/**
 * Text with the passwords of its URLs masked: `https://user:***@host`. What stands before a URL's last `@` counts as user
 * and password, since a password that should have been escaped may hold any character, commas and slashes included.
 */
export function withoutPasswords(text: string): string {
  return text
    .split(/(,(?=\s*https?:\/\/))/)
    .map((part) =>
      part.replaceAll(/:\/\/([^\s:@/]*)(:?)\S*@/g, (_, user: string, colon: string) => `://${colon === '' ? '' : `${user}:`}***@`),
    )
    .join('');
}
