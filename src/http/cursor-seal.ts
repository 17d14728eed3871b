/**
 * Cursors as people receive them. A cursor names the last row of a page, which its reader could see; sealed, it tells nothing to
 * anyone to whom it is passed on, and it gives no permission: the page is that of the person who asks.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { AnyRequest } from '../api/row.ts';
import { RequestError } from '../domain/request-error.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** As NIST SP 800-38D has them for GCM. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface CursorSeal {
  /** The request with the cursor that the store understands. Throws `request.invalid` for one that was not sealed here. */
  opened(request: AnyRequest): Promise<AnyRequest>;
  /** The answer with a cursor that only the registry can read. */
  sealed(answer: unknown): Promise<unknown>;
}

/** Creates it. `sharedKey`: the secret that all processes of the registry share. */
export function createCursorSeal(sharedKey: () => Promise<string>): CursorSeal {
  let keyOfProcess: Promise<Buffer> | undefined;

  function key(): Promise<Buffer> {
    keyOfProcess ??= sharedKey()
      .then((secret) => Buffer.from(hkdfSync('sha256', secret, '', 'cursor', KEY_BYTES)))
      .catch((error: unknown) => {
        keyOfProcess = undefined;
        throw error;
      });
    return keyOfProcess;
  }

  async function openedCursor(cursor: string): Promise<string> {
    const opened = openedWith(await key(), cursor);
    if (opened !== undefined) return opened;
    // a store that was made again has another secret
    keyOfProcess = undefined;
    const again = openedWith(await key(), cursor);
    if (again === undefined) throw new RequestError('request.invalid', 'cursor: must be the `next` value of an earlier page of this list');
    return again;
  }

  return {
    async opened(request) {
      const { query, body } = request;
      if (hasText(query, 'cursor')) return { ...request, query: { ...query, cursor: await openedCursor(query.cursor) } };
      if (hasText(body, 'cursor')) return { ...request, body: { ...body, cursor: await openedCursor(body.cursor) } };
      return request;
    },
    async sealed(answer) {
      return hasText(answer, 'next') ? { ...answer, next: sealedWith(await key(), answer.next) } : answer;
    },
  };
}

function sealedWith(key: Buffer, text: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

/** Undefined for a text that was not sealed with this key. */
function openedWith(key: Buffer, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    return undefined;
  }
}

function hasText<Name extends string>(value: unknown, name: Name): value is Record<Name, string> & object {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, name) === 'string';
}
