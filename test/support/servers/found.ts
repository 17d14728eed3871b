/** The real servers of a test run: given by address, or started once by global-setup.ts. */
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    opensearchUrl: string | undefined;
    awsEndpoint: string | undefined;
    securedOpensearchUrl: string | undefined;
    securedOpensearchCaFile: string | undefined;
  }
}

/** In CI nothing may be skipped: a test file that finds no server fails there, whatever global-setup.ts decided. */
function requiredInCi(name: string, value: string | undefined): string | undefined {
  if (value === undefined && process.env['CI'] === 'true') throw new Error(`CI=true, but this run has no ${name}`);
  return value;
}

/** URL of an OpenSearch without security; undefined when this run has none. */
export function opensearchUrl(): string | undefined {
  return requiredInCi('OpenSearch', inject('opensearchUrl'));
}

/** Endpoint of a LocalStack (SQS, SNS, S3, EventBridge; account 000000000000); undefined when this run has none. */
export function awsEndpoint(): string | undefined {
  return requiredInCi('LocalStack', inject('awsEndpoint'));
}

/** An OpenSearch with TLS and users; undefined when this run has none. */
export function securedOpensearch(): { readonly adminUrl: string; readonly caFile: string } | undefined {
  const adminUrl = requiredInCi('OpenSearch with TLS and users', inject('securedOpensearchUrl'));
  const caFile = inject('securedOpensearchCaFile');
  return adminUrl === undefined || caFile === undefined ? undefined : { adminUrl, caFile };
}
