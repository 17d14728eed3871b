/** The real servers of a test run: given by address, or started once by global-setup.ts. */
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    opensearchUrl: string | undefined;
    limitedOpensearchUrl: string | undefined;
    awsEndpoint: string | undefined;
    securedOpensearchUrl: string | undefined;
    securedOpensearchCaFile: string | undefined;
  }
}

/** URL of an OpenSearch without security; undefined when this run has none. */
export function opensearchUrl(): string | undefined {
  return inject('opensearchUrl');
}

/** Endpoint of a LocalStack (SQS, SNS, S3, EventBridge; account 000000000000); undefined when this run has none. */
export function awsEndpoint(): string | undefined {
  return inject('awsEndpoint');
}

/** URL of an OpenSearch that nobody else uses, with small limits (see global-setup.ts); undefined when this run has none. */
export function limitedOpensearchUrl(): string | undefined {
  return inject('limitedOpensearchUrl');
}

/** An OpenSearch with TLS and users; undefined when this run has none. */
export function securedOpensearch(): { readonly adminUrl: string; readonly caFile: string } | undefined {
  const adminUrl = inject('securedOpensearchUrl');
  const caFile = inject('securedOpensearchCaFile');
  return adminUrl === undefined || caFile === undefined ? undefined : { adminUrl, caFile };
}
