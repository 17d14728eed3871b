/** Issuers at which anyone can have an account, so that an account there says nothing about who may use this registry. */

const HOSTS: ReadonlySet<string> = new Set([
  'accounts.google.com',
  'appleid.apple.com',
  'account.apple.com',
  'gitlab.com',
  'login.yahoo.com',
  'www.facebook.com',
  'www.linkedin.com',
  'www.paypal.com',
  'access.line.me',
  'id.twitch.tv',
  'slack.com',
  'login.salesforce.com',
  'oauth.id.jumpcloud.com',
  'token.actions.githubusercontent.com',
]);

/** Microsoft's addresses for accounts of all organisations, and the tenant of private accounts. */
const OF_MANY_TENANTS = /^\/(?:common|organizations|consumers|9188040d-6c67-4c5b-b112-36a304b66dad)(?:\/|$)/i;
const MICROSOFT: ReadonlySet<string> = new Set(['login.microsoftonline.com', 'login.microsoft.com', 'sts.windows.net']);

/** Whether two addresses are that of one issuer. They are compared as URLs, because `https://id.example.com` and the same with a slash are one. */
export function isSameIssuer(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => text.replace(/\/\.well-known\/openid-configuration$/, ''));
  return a === b || (URL.canParse(a ?? '') && URL.canParse(b ?? '') && new URL(a ?? '').href === new URL(b ?? '').href);
}

/** Whether an issuer is known to have accounts of many organisations or of anyone. */
export function isPublicIssuer(issuer: string): boolean {
  const { hostname, pathname } = new URL(issuer);
  return HOSTS.has(hostname) || (MICROSOFT.has(hostname) && OF_MANY_TENANTS.test(pathname));
}
