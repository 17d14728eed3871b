/**
 * The two sides of a connection: that of the bucket, with its topic and its rule, and that of the bucket queue. They may be in
 * different regions and accounts, and then each request goes to one of them, with its credentials.
 */

export interface Side {
  readonly of: 'bucket' | 'queue';
  readonly account: string;
  readonly region: string;
  /** The role whose credentials are used; absent: those of the process. */
  readonly role?: string | undefined;
}

/** The roles that the settings name, by their accounts. */
export type Roles = ReadonlyMap<string, string>;

/** The side with the role of its account. */
export function withRole(side: Side, roles: Roles): Side {
  const role = roles.get(side.account);
  return role === undefined ? side : { ...side, role };
}

/** A side as people read it. */
export function sideText({ of, account, region, role }: Side): string {
  return `on the side of the ${of}: ${region}, account ${account}, with ${role === undefined ? 'the credentials of the process' : `the role ${role}`}`;
}
