/** Requests as a browser sends them: with its cookies, and without following redirects by itself. */
import { request } from 'node:http';

export interface BrowserAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly location: string | undefined;
  readonly text: string;
}

interface Sent {
  /** Sent, and changed by the answer. */
  readonly cookies?: Map<string, string>;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The address of this machine from which the request comes, one of 127.0.0.0/8. */
  readonly from?: string;
  /** The socket by which it is sent, in place of the address. */
  readonly socketPath?: string;
}

/** By node:http, because fetch lets no caller choose Host, Origin and Sec-Fetch-Site. */
export function get(url: string, sent: Sent = {}): Promise<BrowserAnswer> {
  const { cookies = new Map<string, string>(), method = 'GET', headers = {}, body, from, socketPath } = sent;
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const { hostname, port, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        hostname: hostname.replaceAll(/[[\]]/g, ''),
        port,
        path: `${pathname}${search}`,
        method,
        headers: { ...(cookie !== '' && { cookie }), ...headers },
        ...(from !== undefined && { localAddress: from }),
        ...(socketPath !== undefined && { socketPath }),
      },
      (response) => {
        for (const each of response.headers['set-cookie'] ?? []) keep(cookies, each);
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, location: response.headers.location, text }),
        );
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

function keep(cookies: Map<string, string>, header: string): void {
  const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
  if (value === '' || /max-age=0/i.test(header) || /expires=Thu, 01 Jan 1970/i.test(header)) cookies.delete(name);
  else cookies.set(name, value);
}
