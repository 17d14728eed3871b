/** What the tests use of oidc-provider, which comes without types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  interface Grant {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  }

  interface Details {
    readonly uid: string;
    readonly prompt: { readonly name: string };
    readonly params: { readonly client_id: string; readonly scope: string };
    readonly session?: { readonly accountId: string };
  }

  export class Provider {
    constructor(issuer: string, configuration: object);
    readonly Grant: new (of: { readonly accountId: string; readonly clientId: string }) => Grant;
    callback(): RequestListener;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Details>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  }
}
