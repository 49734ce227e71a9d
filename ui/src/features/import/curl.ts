/** A curl command as the definition of an HTTP tool. */
import type { Json, JsonObject } from '@/api/types';

/** Splits a command as a POSIX shell would, without expanding anything. */
export function shellWords(text: string): string[] {
  const words: string[] = [];
  let word = '';
  let open = false;
  let quote = '';
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? '';
    if (quote === "'") {
      if (character === "'") quote = '';
      else word += character;
    } else if (quote === '"') {
      if (character === '"') quote = '';
      else if (character === '\\' && /["\\$`\n]/.test(text[index + 1] ?? '')) { index += 1; if (text[index] !== '\n') word += text[index] ?? ''; }
      else word += character;
    } else if (character === "'" || character === '"') { quote = character; open = true; }
    else if (character === '\\') { index += 1; if (text[index] === '\r') index += 1; if (text[index] !== '\n') { word += text[index] ?? ''; open = true; } }
    else if (/\s/.test(character)) { if (open) words.push(word); word = ''; open = false; }
    else { word += character; open = true; }
  }
  if (open) words.push(word);
  return words;
}

export interface CurlImport {
  doc: JsonObject;
  /** Headers that carry a secret, and the credential that replaces each value. */
  secrets: { name: string; header: string }[];
  ignored: string[];
}

const WITH_VALUE = new Set(['-X', '--request', '-H', '--header', '-d', '--data', '--data-raw', '--data-binary', '--data-ascii', '--json', '--url', '-u', '--user', '-A', '--user-agent', '-e', '--referer', '-b', '--cookie', '-o', '--output', '-m', '--max-time', '--connect-timeout']);
const SILENT = new Set(['-s', '--silent', '-S', '--show-error', '-L', '--location', '-f', '--fail', '-i', '--include', '-v', '--verbose', '--compressed', '-k', '--insecure', '-sS', '-sL', '-fsSL']);
const SECRET_HEADER = /^(authorization|x-api-key|api-key|x-auth-token|cookie)$/i;

function slug(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, '-').replaceAll(/^-+|-+$/g, '').toLowerCase().slice(0, 50) || 'request';
}

function asType(value: string): { type: string; value: Json } {
  if (/^-?\d{1,15}$/.test(value)) return { type: 'integer', value: Number(value) };
  if (value === 'true' || value === 'false') return { type: 'boolean', value: value === 'true' };
  return { type: 'string', value };
}

export function isCurl(text: string): boolean {
  return /^\s*(?:\$\s*)?curl\s/.test(text);
}

/** Query parameters and the fields of a JSON body become arguments with the given values as defaults. */
export function parseCurl(text: string): CurlImport | { error: string } {
  const words = shellWords(text.replace(/^\s*\$\s*/, ''));
  if (words[0] !== 'curl') return { error: 'The text does not start with `curl`.' };
  let method = '';
  let address = '';
  let body: string | undefined;
  let isJson = false;
  const headers: Record<string, string> = {};
  const ignored: string[] = [];
  for (let index = 1; index < words.length; index += 1) {
    let option = words[index] ?? '';
    if (!option.startsWith('-')) { address ||= option; continue; }
    let value: string | undefined;
    const equals = option.startsWith('--') ? option.indexOf('=') : -1;
    if (equals > 0) { value = option.slice(equals + 1); option = option.slice(0, equals); }
    else if (/^-[XHdu]./.test(option)) { value = option.slice(2); option = option.slice(0, 2); }
    else if (WITH_VALUE.has(option)) { index += 1; value = words[index]; }
    if (option === '-X' || option === '--request') method = (value ?? '').toUpperCase();
    else if (option === '--url') address = value ?? '';
    else if (option === '-H' || option === '--header') { const at = (value ?? '').indexOf(':'); if (at > 0) headers[(value ?? '').slice(0, at).trim()] = (value ?? '').slice(at + 1).trim(); }
    else if (option.startsWith('-d') || option.startsWith('--data') || option === '--json') { body = body === undefined ? (value ?? '') : `${body}&${value ?? ''}`; if (option === '--json') isJson = true; }
    else if (option === '-u' || option === '--user') headers['Authorization'] = `Basic ${value ?? ''}`;
    else if (option === '-A' || option === '--user-agent') headers['User-Agent'] = value ?? '';
    else if (!SILENT.has(option)) ignored.push(option);
  }
  if (!address) return { error: 'The command has no URL.' };
  let url: URL;
  try {
    url = new URL(/^[a-z]+:\/\//i.test(address) ? address : `https://${address}`);
  } catch {
    return { error: `\`${address}\` is not a URL.` };
  }
  const params: JsonObject[] = [];
  const query: JsonObject = {};
  for (const [name, value] of url.searchParams) {
    const key = slug(name).replaceAll('-', '_');
    const typed = asType(value);
    params.push({ name: key, type: typed.type, default: typed.value });
    query[name] = `{{${key}}}`;
  }
  const secrets: CurlImport['secrets'] = [];
  for (const [header, value] of Object.entries(headers)) {
    if (!SECRET_HEADER.test(header) || value.includes('${')) continue;
    const name = `${slug(url.hostname).replaceAll('-', '_').toUpperCase()}_${slug(header).replaceAll('-', '_').toUpperCase()}`;
    const scheme = /^(Bearer|Token)\s/i.exec(value)?.[0] ?? '';
    headers[header] = `${scheme}\${${name}}`;
    secrets.push({ name, header });
  }
  let content: Json | undefined = body;
  if (body !== undefined) {
    try {
      const parsed = JSON.parse(body) as Json;
      if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
        content = Object.fromEntries(Object.entries(parsed).map(([name, value]) => {
          if (typeof value === 'object' || !/^[A-Za-z_]\w*$/.test(name) || params.some((param) => param['name'] === name)) return [name, value];
          params.push({ name, type: typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'boolean' : 'string', default: value });
          return [name, `{{${name}}}`];
        }));
      } else content = parsed;
      isJson = true;
    } catch {
      content = body;
    }
  }
  if (isJson && !Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')) headers['Content-Type'] = 'application/json';
  const chosen = method || (body === undefined ? 'GET' : 'POST');
  const path = url.pathname === '/' ? '' : url.pathname;
  const doc: JsonObject = {
    name: slug(`${chosen.toLowerCase()} ${path.split('/').filter(Boolean).slice(-2).join(' ') || url.hostname}`),
    description: `${chosen} ${url.origin}${path}`,
    params,
    implementation: {
      type: 'http', method: chosen, url: `${url.origin}${path}`,
      ...(Object.keys(query).length > 0 ? { query } : {}), ...(Object.keys(headers).length > 0 ? { headers } : {}), ...(content === undefined ? {} : { body: content }),
    },
  };
  return { doc, secrets, ignored };
}
