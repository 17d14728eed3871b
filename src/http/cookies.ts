/** The cookies of browsers: one for the session, one for a login under way. Scripts never see either of them. */

/**
 * The names of the cookies. Over https the prefix __Host- makes browsers keep other hosts of the domain from setting them. On
 * http, which is loopback, the port is part of the name, because cookies of all ports of a host are one set.
 */
export function cookieNamesOf(publicUrl: string): { readonly session: string; readonly login: string } {
  const { protocol, port } = new URL(publicUrl);
  if (protocol === 'https:') return { session: '__Host-tally', login: '__Host-tally-login' };
  return { session: `tally-${port || '80'}`, login: `tally-login-${port || '80'}` };
}

/** The Set-Cookie header of a cookie. Lax: the browser sends it when the issuer sends the browser back, and not with requests of other sites. */
export function cookieOf(publicUrl: string, name: string, value: string, maxAgeMs: number): string {
  const secure = publicUrl.startsWith('https:') ? '; Secure' : '';
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${Math.floor(maxAgeMs / 1_000)}${secure}`;
}

/** The value of a cookie; undefined if the request has none, or several of that name, of which another site set one. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  const values = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}
