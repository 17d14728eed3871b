/** Serves the panel's files, compressed, with the policy under which browsers run them. */
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PanelName } from './contract/contract.ts';
import { RequestError } from '../base/request-error.ts';
import type { Handler } from './server.ts';

/** Loads files by name: index.html, and a script and a style sheet whose names change with their content. */
export type LoadFiles = () => Promise<ReadonlyMap<string, Uint8Array>>;

interface ServedFile {
  readonly plain: Uint8Array;
  readonly zipped: Uint8Array;
}

const PAGE = 'index.html';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};

/**
 * Only the panel's own files run, and no text becomes markup or script (Trusted Types; the panel creates no policy). Data images are the
 * style sheet's check marks.
 */
const panelHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

const compress = promisify(gzip);

async function compressed(files: ReadonlyMap<string, Uint8Array>): Promise<ReadonlyMap<string, ServedFile>> {
  const entries = [...files].map(async ([name, plain]) => {
    return [name, { plain, zipped: await compress(plain, { level: 9 }) }] as const;
  });
  return new Map(await Promise.all(entries));
}

type Send = (name: string, request: FastifyRequest, reply: FastifyReply, cacheControl: string) => Promise<FastifyReply>;

/** Creates the function that sends a file. The files are loaded at the first request or, if that fails, at the next. */
function createSend(load: LoadFiles, notFound: string): Send {
  let loading: Promise<ReadonlyMap<string, ServedFile>> | undefined;
  async function files(): Promise<ReadonlyMap<string, ServedFile>> {
    loading ??= load().then(compressed);
    try {
      return await loading;
    } catch (error) {
      loading = undefined;
      throw error;
    }
  }

  return async function send(name, request, reply, cacheControl) {
    const file = (await files()).get(name);
    if (file === undefined) throw new RequestError('request.not-found', notFound);
    const { plain, zipped } = file;
    void reply.headers({ ...panelHeaders, vary: 'accept-encoding', 'cache-control': cacheControl });
    void reply.type(types[extname(name)] ?? 'application/octet-stream');
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain);
    return reply.header('content-encoding', 'gzip').send(zipped);
  };
}

/** A page of a kilobyte, which names the other files. */
const CHECKED = 'no-cache';
/** The file's name changes with its content. */
const KEPT = 'public, max-age=31536000, immutable';

/** Creates the panel's handlers. */
export function createPanelHandlers(load: LoadFiles): Readonly<Record<PanelName, Handler>> {
  const send = createSend(load, 'the panel has no such file: reload /panel/');
  // relative, because a proxy may have added a path prefix; with the query, which says what to show
  const redirect: Handler = ({ url }, reply) => redirected(reply, `panel/${/\?.*/.exec(url)?.[0] ?? ''}`);
  return {
    openPanel: redirect,
    findPanel: redirect,
    getPanel: (request, reply) => send(PAGE, request, reply, CHECKED),
    getPanelFile: (request, reply) => send(paramOf(request, 'file'), request, reply, KEPT),
  };
}

async function redirected(reply: FastifyReply, location: string): Promise<FastifyReply> {
  return reply.code(302).header('location', location).send();
}

function paramOf({ params }: FastifyRequest, name: string): string {
  return typeof params === 'object' && params !== null && name in params
    ? String(Object.getOwnPropertyDescriptor(params, name)?.value)
    : '';
}
