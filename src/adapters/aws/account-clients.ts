/** The AWS clients for what belongs to other accounts: each has the credentials of a role of its account. */
import type { AwsClients } from './clients.ts';
import type { CredentialsProvider } from './credentials.ts';

export interface AccountClients {
  /** The clients with the role of the account; undefined: no role of it is known. They are created when they are first used. */
  of(account: string): AwsClients | undefined;
  /** Closes all connections. */
  close(): void;
}

interface Dependencies {
  /** The ARNs of roles, by account. */
  readonly roles: ReadonlyMap<string, string>;
  readonly credentialsOf: (roleArn: string) => CredentialsProvider;
  readonly clientsWith: (credentials: CredentialsProvider) => AwsClients;
}

/** Creates them. */
export function createAccountClients({ roles, credentialsOf, clientsWith }: Dependencies): AccountClients {
  const made = new Map<string, AwsClients>();
  return {
    of(account) {
      const known = made.get(account);
      const roleArn = roles.get(account);
      if (known !== undefined || roleArn === undefined) return known;
      const clients = clientsWith(credentialsOf(roleArn));
      made.set(account, clients);
      return clients;
    },
    close() {
      for (const clients of made.values()) clients.close();
    },
  };
}
