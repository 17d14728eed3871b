/**
 * A strict reader of small XML documents, which refuses what it does not know rather than losing it: attributes other than
 * namespaces, comments, CDATA, processing instructions and document types.
 */

export interface Element {
  readonly name: string;
  readonly children: readonly Element[];
  /** The text between the tags; only elements without children have one. */
  readonly text: string;
}

export type XmlResult = { readonly ok: true; readonly root: Element } | { readonly ok: false; readonly reason: string };

/** 100 configurations of 10 KB. S3's own documents are far smaller. */
const LENGTH_MAX = 1_000_000;
/** Twice as deep as any document that is read here. */
const DEPTH_MAX = 10;

interface Open {
  readonly name: string;
  readonly children: Element[];
  text: string;
}

const DECLARATION = /^\uFEFF?\s*(?:<\?xml[^>?]*\?>)?\s*/;
const TOKEN = /<(\/?)([A-Za-z][\w.-]*)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;
const ATTRIBUTE = /([\w:.-]+)\s*=/g;

/** Reads the document. */
export function parseXml(text: string): XmlResult {
  if (text.length > LENGTH_MAX) return { ok: false, reason: `the document is longer than ${LENGTH_MAX} characters` };
  const top: Open = { name: '', children: [], text: '' };
  const open: Open[] = [top];
  const mistake = takeAll(open, text);
  if (mistake !== undefined) return { ok: false, reason: mistake };
  const [root, ...more] = top.children;
  if (open.length !== 1 || root === undefined || more.length > 0) return { ok: false, reason: 'the document has not exactly one root' };
  return top.text.trim() === '' ? { ok: true, root } : { ok: false, reason: 'there is text outside of the root' };
}

/** Takes all tokens, and returns what is wrong with the first that is. */
function takeAll(open: Open[], text: string): string | undefined {
  TOKEN.lastIndex = DECLARATION.exec(text)?.[0].length ?? 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const token = TOKEN.exec(text);
    const mistake = token === null ? `what follows character ${at} is not an element` : take(open, token);
    if (mistake !== undefined) return mistake;
  }
  return undefined;
}

/** Takes one token, and returns what is wrong with it. */
function take(open: Open[], [, slash, name, attributes = '', empty, text]: RegExpExecArray): string | undefined {
  const parent = open.at(-1);
  if (parent === undefined) return 'an element is closed twice';
  if (name === undefined) return takeText(parent, text ?? '');
  const unknown = [...attributes.matchAll(ATTRIBUTE)].map(([, found = '']) => found).find((found) => !/^xmlns(:|$)/.test(found));
  if (unknown !== undefined) return `<${name}> has the unknown attribute ${unknown}`;
  if (slash === '/') return close(open, name);
  open.push({ name, children: [], text: '' });
  if (open.length > DEPTH_MAX) return 'the elements are nested too deeply';
  return empty === '/' ? close(open, name) : undefined;
}

function takeText(parent: Open, text: string): string | undefined {
  const decoded = decodeEntities(text);
  if (decoded === undefined) return `<${parent.name}> has an unknown entity`;
  parent.text += decoded;
  return undefined;
}

function close(open: Open[], name: string): string | undefined {
  const closed = open.pop();
  const parent = open.at(-1);
  if (closed === undefined || parent === undefined || closed.name !== name) return `</${name}> closes no element`;
  if (closed.children.length > 0 && closed.text.trim() !== '') return `<${name}> has both text and elements`;
  parent.children.push(closed);
  return undefined;
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['lt', '<'],
  ['gt', '>'],
  ['amp', '&'],
  ['quot', '"'],
  ['apos', "'"],
]);

/** Undefined if the text has an entity that XML does not define. */
function decodeEntities(text: string): string | undefined {
  let isKnown = true;
  const decoded = text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w+));|&/g, (_, decimal?: string, hex?: string, name?: string) => {
    const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
    const found = name === undefined ? (point <= 0x10_ff_ff ? String.fromCodePoint(point) : undefined) : ENTITIES.get(name);
    if (found === undefined) isKnown = false;
    return found ?? '';
  });
  return isKnown ? decoded : undefined;
}
