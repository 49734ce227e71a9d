/** The languages of the editor; each loads when a text needs it. */
import { StreamLanguage, type StreamParser } from '@codemirror/language';
import type { Extension } from '@codemirror/state';

const stream = async (load: () => Promise<StreamParser<unknown>>): Promise<Extension> => StreamLanguage.define(await load());
const clike = (name: 'c' | 'cpp' | 'csharp' | 'java' | 'kotlin' | 'scala') => stream(async () => (await import('@codemirror/legacy-modes/mode/clike'))[name] as StreamParser<unknown>);
const yaml = async () => (await import('@codemirror/lang-yaml')).yaml();

const LANGUAGES: Record<string, () => Promise<Extension>> = {
  json: async () => (await import('@codemirror/lang-json')).json(),
  yaml, skill: yaml,
  python: async () => (await import('@codemirror/lang-python')).python(),
  bash: () => stream(async () => (await import('@codemirror/legacy-modes/mode/shell')).shell),
  shell: () => stream(async () => (await import('@codemirror/legacy-modes/mode/shell')).shell),
  javascript: () => stream(async () => (await import('@codemirror/legacy-modes/mode/javascript')).javascript as StreamParser<unknown>),
  typescript: () => stream(async () => (await import('@codemirror/legacy-modes/mode/javascript')).typescript as StreamParser<unknown>),
  html: () => stream(async () => (await import('@codemirror/legacy-modes/mode/xml')).html as StreamParser<unknown>),
  xml: () => stream(async () => (await import('@codemirror/legacy-modes/mode/xml')).xml as StreamParser<unknown>),
  css: () => stream(async () => (await import('@codemirror/legacy-modes/mode/css')).css as StreamParser<unknown>),
  sass: () => stream(async () => (await import('@codemirror/legacy-modes/mode/css')).sCSS as StreamParser<unknown>),
  rust: () => stream(async () => (await import('@codemirror/legacy-modes/mode/rust')).rust as StreamParser<unknown>),
  go: () => stream(async () => (await import('@codemirror/legacy-modes/mode/go')).go as StreamParser<unknown>),
  ruby: () => stream(async () => (await import('@codemirror/legacy-modes/mode/ruby')).ruby as StreamParser<unknown>),
  perl: () => stream(async () => (await import('@codemirror/legacy-modes/mode/perl')).perl as StreamParser<unknown>),
  lua: () => stream(async () => (await import('@codemirror/legacy-modes/mode/lua')).lua as StreamParser<unknown>),
  r: () => stream(async () => (await import('@codemirror/legacy-modes/mode/r')).r as StreamParser<unknown>),
  julia: () => stream(async () => (await import('@codemirror/legacy-modes/mode/julia')).julia as StreamParser<unknown>),
  haskell: () => stream(async () => (await import('@codemirror/legacy-modes/mode/haskell')).haskell as StreamParser<unknown>),
  swift: () => stream(async () => (await import('@codemirror/legacy-modes/mode/swift')).swift as StreamParser<unknown>),
  sql: () => stream(async () => (await import('@codemirror/legacy-modes/mode/sql')).standardSQL as StreamParser<unknown>),
  toml: () => stream(async () => (await import('@codemirror/legacy-modes/mode/toml')).toml as StreamParser<unknown>),
  properties: () => stream(async () => (await import('@codemirror/legacy-modes/mode/properties')).properties as StreamParser<unknown>),
  dockerfile: () => stream(async () => (await import('@codemirror/legacy-modes/mode/dockerfile')).dockerFile as StreamParser<unknown>),
  powershell: () => stream(async () => (await import('@codemirror/legacy-modes/mode/powershell')).powerShell as StreamParser<unknown>),
  diff: () => stream(async () => (await import('@codemirror/legacy-modes/mode/diff')).diff as StreamParser<unknown>),
  cmake: () => stream(async () => (await import('@codemirror/legacy-modes/mode/cmake')).cmake as StreamParser<unknown>),
  latex: () => stream(async () => (await import('@codemirror/legacy-modes/mode/stex')).stex as StreamParser<unknown>),
  protobuf: () => stream(async () => (await import('@codemirror/legacy-modes/mode/protobuf')).protobuf as StreamParser<unknown>),
  c: () => clike('c'), cpp: () => clike('cpp'), csharp: () => clike('csharp'), java: () => clike('java'), kotlin: () => clike('kotlin'), scala: () => clike('scala'),
};

/** Without colours where the language is not known, or cannot be loaded now. */
export async function loadLanguage(name: string): Promise<Extension> {
  return (await LANGUAGES[name]?.().catch(() => [])) ?? [];
}
