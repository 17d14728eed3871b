/** What is in every fixture of a store (write-fixture.ts), and where. */
import packageJson from '../../../package.json' with { type: 'json' };

/** The folders of the versions. */
export const FIXTURES = new URL('../../fixtures/stores/', import.meta.url);
/** The version that writes them now. */
export const { version } = packageJson;
/** Of the OpenSearch indices. */
export const PREFIX = 'fixture';

/** In the bucket demo. */
export const objects = { found: 'docs/annual report.pdf', deleted: 'photos/old.jpg' } as const;
export const grant = { who: 'user:alice@example.com', where: 'demo/docs/' } as const;
