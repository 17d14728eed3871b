/**
 * The OpenAPI document of the API, whose last released form clients/openapi.json keeps. `node config/tooling/openapi.ts`
 * (`npm run openapi`) freezes the present one, as a release does.
 */
import { writeFileSync } from 'node:fs';
import packageJson from '../../package.json' with { type: 'json' };
import { rows } from '../../src/registry/contract/contract.ts';
import { openApiOf } from '../../src/registry/contract/openapi.ts';

/** The present document, with a line for each thing, so that a change is read as one. */
export function openApiDocument(): string {
  return `${JSON.stringify(JSON.parse(openApiOf(rows, packageJson.version)), undefined, 1)}\n`;
}

if (import.meta.main) writeFileSync(new URL('../../clients/openapi.json', import.meta.url), openApiDocument());
