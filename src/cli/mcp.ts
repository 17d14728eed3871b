import type { Command } from 'commander';
import { ClientError } from '../client/client-error.ts';
import type { Streams } from '../mcp/stdio.ts';
import { withExamples } from './arguments.ts';
import type { Cli } from './cli.ts';
import { problemOf } from './errors.ts';
import { exitCodes } from './exit-codes.ts';

export interface McpDependencies {
  readonly version: string;
  /** The streams on which a program speaks with this process. */
  readonly streams: () => Streams;
}

/** `tally mcp`: tools for a program that acts for the person who starts it. */
export function addMcpCommand(program: Command, cli: Cli, { version, streams }: McpDependencies): void {
  const command = program
    .command('mcp')
    .summary('serve tools to a program that acts for you (MCP)')
    .description(
      'Serves tools to a program that acts for you, by the Model Context Protocol on stdin and stdout, until stdin ends. Such programs start it themselves. The tools only read, as you: they find and describe objects, sum them, list buckets and changes, and say how far the index agrees with S3. With TALLY_OIDC_ISSUER it needs a registry and a login or an API key, and does not open the store.',
    );
  withExamples(command, 'tally mcp', 'TALLY_API_KEY_FILE=key.txt tally mcp --registry https://registry.example.com').action(async () => {
    await requireCredential(cli);
    await cli.withControl(async (control, { actor }) =>
      cli.interruptible(async (signal) => {
        const [{ serveStdio }, { withinLimits }] = await Promise.all([import('../mcp/stdio.ts'), import('../http/searches.ts')]);
        const operations = withinLimits(control, cli.clock);
        await serveStdio({ operations, actor, version, problemOf, signal }, streams());
        if (signal.aborted) cli.endWith(exitCodes.interrupted);
      }),
    );
  });
}

/** With an issuer callers are known to a registry only, which also says what they may read. Throws {@link ClientError} without a credential for one. */
async function requireCredential(cli: Cli): Promise<void> {
  const { TALLY_OIDC_ISSUER: issuer, TALLY_REGISTRY_URL: registryUrl, TALLY_API_KEY: apiKey } = cli.settings();
  if (issuer === undefined) return;
  const registry = await cli.withClient(async (client) => client.registryOf({ registryUrl, apiKey }));
  if (registry?.token === undefined) {
    throw new ClientError(
      'login.missing',
      'TALLY_OIDC_ISSUER is set, so the tools read as a person or a program that a registry knows: run `tally login https://HOST`, or name the registry with --registry and a key with TALLY_API_KEY_FILE',
    );
  }
  cli.override({ TALLY_REGISTRY_URL: registry.url });
}
