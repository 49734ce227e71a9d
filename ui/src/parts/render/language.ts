/** The language of a text, by the name of its file and by its first lines. */

const BY_NAME: Record<string, string> = {
  dockerfile: 'dockerfile', containerfile: 'dockerfile', makefile: 'shell', gemfile: 'ruby', rakefile: 'ruby', 'cmakelists.txt': 'cmake', '.bashrc': 'shell', '.profile': 'shell', '.env': 'properties', '.gitignore': 'text',
};

const BY_ENDING: Record<string, string> = {
  json: 'json', jsonl: 'json', ndjson: 'json', webmanifest: 'json', yaml: 'yaml', yml: 'yaml', skill: 'yaml', toml: 'toml', ini: 'properties', cfg: 'properties', conf: 'properties', properties: 'properties',
  py: 'python', pyi: 'python', js: 'javascript', mjs: 'javascript', cjs: 'javascript', jsx: 'javascript', ts: 'typescript', tsx: 'typescript', mts: 'typescript',
  html: 'html', htm: 'html', xml: 'xml', svg: 'xml', xhtml: 'html', css: 'css', scss: 'sass', less: 'css', sh: 'shell', bash: 'shell', zsh: 'shell', ps1: 'powershell',
  rs: 'rust', go: 'go', java: 'java', kt: 'kotlin', scala: 'scala', c: 'c', h: 'c', cc: 'cpp', cpp: 'cpp', hpp: 'cpp', cs: 'csharp', swift: 'swift', rb: 'ruby', pl: 'perl', lua: 'lua', r: 'r', jl: 'julia', hs: 'haskell', clj: 'clojure', erl: 'erlang',
  sql: 'sql', md: 'markdown', markdown: 'markdown', diff: 'diff', patch: 'diff', tex: 'latex', proto: 'protobuf', dockerfile: 'dockerfile', txt: 'text', log: 'text', csv: 'text', tsv: 'text',
};

/** Other names of languages, as configurations spell them. */
const ALIASES: Record<string, string> = { bash: 'shell', sh: 'shell', zsh: 'shell', js: 'javascript', ts: 'typescript', py: 'python', yml: 'yaml', md: 'markdown', 'c++': 'cpp', 'c#': 'csharp', rs: 'rust', plain: 'text', plaintext: 'text', text: 'text', console: 'shell' };

const INTERPRETERS: [RegExp, string][] = [[/\bpython/, 'python'], [/\b(?:ba|z|da|k)?sh\b/, 'shell'], [/\b(?:node|deno|bun)\b/, 'javascript'], [/\bruby\b/, 'ruby'], [/\bperl\b/, 'perl'], [/\bRscript\b/, 'r'], [/\blua\b/, 'lua']];

function isJson(text: string): boolean {
  if (!/^[[{]/.test(text) || text.length > 200_000) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function byContent(content: string): string {
  const start = content.slice(0, 4000);
  const text = content.trim();
  const interpreter = /^#!(.*)/.exec(start)?.[1];
  if (interpreter !== undefined) return INTERPRETERS.find(([pattern]) => pattern.test(interpreter))?.[1] ?? 'shell';
  if (isJson(text)) return 'json';
  if (/^<\?xml\b/.test(text)) return 'xml';
  if (/^<!doctype html|^<html\b/i.test(text)) return 'html';
  if (/^(?:diff --git |--- .*\n\+\+\+ )/m.test(start)) return 'diff';
  if (/^\s*(?:def \w+\(.*\).*:|class \w+.*:|from [\w.]+ import |import \w+(?:\.\w+)*$)/m.test(start)) return 'python';
  if (/^\s*(?:use (?:std|crate)\b|(?:pub )?fn \w+.*\{|impl\b.*\{)/m.test(start)) return 'rust';
  if (/^package \w+$/m.test(start)) return 'go';
  if (/^\s*(?:import .* from ['"]|export (?:default|const|function)|const \w+ = |function \w+\()/m.test(start)) return 'javascript';
  if (/^\s*(?:select\b[\s\S]*\bfrom\b|create table|insert into)/i.test(text)) return 'sql';
  if (/^---\n|^[\w-]+:(?: .*)?\n(?:[\w-]+:|\s+- |\s+\w)/.test(start)) return 'yaml';
  if (/^#{1,4} \S/m.test(start)) return 'markdown';
  return 'text';
}

/** `auto` and an unknown name are derived; everything else is taken as it is. */
export function detectLanguage(language: string | undefined, fileName: string | undefined, content: string): string {
  const asked = (language ?? 'auto').toLowerCase();
  if (asked !== 'auto' && asked !== '') return ALIASES[asked] ?? asked;
  const name = (fileName ?? '').split('/').at(-1)?.toLowerCase() ?? '';
  const ending = name.includes('.') ? name.split('.').at(-1) : undefined;
  const known = BY_NAME[name] ?? (ending === undefined ? undefined : BY_ENDING[ending]);
  return known ?? byContent(content);
}
