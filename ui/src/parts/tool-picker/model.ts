/**
 * A list of tools as rules: a name, `bundle:name`, `bundle:*` or `tag:name`, where `*` stands for any text. The server reads
 * them the same way, so a rule also holds for tools that are added later. A rule after `!` excludes tools that others select.
 */
import type { Filterable } from '../taxonomy';

export interface PickTool extends Filterable {
  version: string;
  source: string;
  callable: boolean;
  requires_confirmation?: boolean;
}

export type GroupKind = 'builtin' | 'own' | 'toolset' | 'mcp';

export interface ToolGroup<T> {
  bundle: string;
  kind: GroupKind;
  tools: T[];
}

/** What a token takes. */
export const MAX_RULES = 256;
const MAX_RULE_LENGTH = 256;

/** `*` stands for any text; linear in the text for each `*`. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  const last = parts.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

export const isExclusion = (rule: string) => rule.startsWith('!');
const plain = (rule: string) => (isExclusion(rule) ? rule.slice(1) : rule);

export function matchesRule(text: string, tool: Pick<PickTool, 'bundle' | 'name' | 'tags'>): boolean {
  const rule = plain(text);
  const colon = rule.indexOf(':');
  if (colon < 0) return matchesPattern(rule, tool.name);
  const scope = rule.slice(0, colon);
  const name = rule.slice(colon + 1);
  return scope === 'tag' ? tool.tags.includes(name) : matchesPattern(scope, tool.bundle) && matchesPattern(name, tool.name);
}

/** Whether the server takes a text as a rule; exclusions only where they are asked for. */
export function isRule(entry: string, exclusions = false): boolean {
  const text = exclusions ? plain(entry) : entry;
  return text.length <= MAX_RULE_LENGTH && (/^tag:.*\S/u.test(text) || /^(?!tag:)(?:[\p{L}\p{N}*\-_./@]+:)?[\p{L}\p{N}*\-_./@]+$/u.test(text));
}

/** Whether a rule can select several tools. */
export const isPattern = (rule: string) => rule.includes('*') || plain(rule).startsWith('tag:') || !rule.includes(':');

type Named = Pick<PickTool, 'bundle' | 'name'>;
/** The rule for one tool, in every version. */
export const ruleOf = (tool: Named) => `${tool.bundle}:${tool.name}`;

/** One row per tool: of several versions, the first that can be called. */
export function distinctTools<T extends PickTool>(tools: readonly T[]): T[] {
  const found = new Map<string, T>();
  for (const tool of tools) {
    const known = found.get(ruleOf(tool));
    if (!known || (!known.callable && tool.callable)) found.set(ruleOf(tool), tool);
  }
  return [...found.values()];
}

const ORDER: GroupKind[] = ['builtin', 'own', 'toolset', 'mcp'];

function kindOf(source: string): GroupKind {
  if (source === 'built-in') return 'builtin';
  return source === 'toolset' || source === 'mcp' ? source : 'own';
}

/** The tools by where they come from: built-in, own bundles, toolsets, MCP servers. */
export function groupTools<T extends PickTool>(tools: readonly T[]): ToolGroup<T>[] {
  const groups = new Map<string, ToolGroup<T>>();
  for (const tool of tools) {
    const group = groups.get(tool.bundle);
    if (group) group.tools.push(tool);
    else groups.set(tool.bundle, { bundle: tool.bundle, kind: kindOf(tool.source), tools: [tool] });
  }
  return [...groups.values()].toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || a.bundle.localeCompare(b.bundle));
}

/** The tools that the rules select. Rules for single tools are looked up, so that 10,000 tools stay quick. */
export function selectedTools<T extends PickTool>(rules: readonly string[], tools: readonly T[]): T[] {
  const exact = new Set(rules);
  const patterns = rules.filter((rule) => isPattern(rule) && !isExclusion(rule));
  const exclusions = rules.filter((rule) => isPattern(rule) && isExclusion(rule));
  return tools.filter((tool) => (exact.has(ruleOf(tool)) || patterns.some((rule) => matchesRule(rule, tool))) && !exact.has(`!${ruleOf(tool)}`) && !exclusions.some((rule) => matchesRule(rule, tool)));
}

/**
 * The rules without some tools. A pattern that selects one of them stays, with an exclusion, where exclusions are possible;
 * otherwise it becomes rules for the other tools.
 */
export function withoutTools<T extends PickTool>(rules: readonly string[], gone: readonly T[], all: readonly T[], exclusions = false): string[] {
  const names = new Set(gone.map(ruleOf));
  if (exclusions) {
    const kept = rules.filter((rule) => !names.has(rule));
    return [...kept, ...selectedTools(kept, gone).map((tool) => `!${ruleOf(tool)}`)];
  }
  const next = rules.flatMap((rule) => {
    if (!gone.some((tool) => matchesRule(rule, tool))) return [rule];
    return all.filter((tool) => matchesRule(rule, tool) && !names.has(ruleOf(tool))).map(ruleOf);
  });
  return [...new Set(next)];
}

/** The exclusions that let some tools through: one that holds for others, too, becomes exclusions of those. */
function admit<T extends PickTool>(rules: readonly string[], added: readonly T[], all: readonly T[]): string[] {
  const names = new Set(added.map(ruleOf));
  return rules.flatMap((rule) => {
    if (!isExclusion(rule) || !added.some((tool) => matchesRule(rule, tool))) return [rule];
    return isPattern(rule) ? all.filter((tool) => matchesRule(rule, tool) && !names.has(ruleOf(tool))).map((tool) => `!${ruleOf(tool)}`) : [];
  });
}

/** The rules with some tools; all tools of a bundle become one rule for the bundle. */
export function withTools<T extends PickTool>(before: readonly string[], added: readonly T[], all: readonly T[]): string[] {
  const rules = admit(before, added, all);
  const first = added[0];
  const isBundle = first !== undefined && added.length > 1 && added.every((tool) => tool.bundle === first.bundle) && all.filter((tool) => tool.bundle === first.bundle).length === added.length;
  if (isBundle) {
    const own = new Set(added.map(ruleOf));
    return [...rules.filter((rule) => !own.has(rule) && rule !== `${first.bundle}:*`), `${first.bundle}:*`];
  }
  const chosen = new Set(selectedTools(rules, added).map(ruleOf));
  return [...rules, ...added.map(ruleOf).filter((rule) => !chosen.has(rule))];
}

/** The rules that select nothing now: a typing error, or a tool that is gone. */
export function emptyRules<T extends PickTool>(rules: readonly string[], tools: readonly T[]): string[] {
  const exact = new Set(tools.flatMap((tool) => [ruleOf(tool), tool.name]));
  return rules.filter((rule) => !exact.has(plain(rule)) && !tools.some((tool) => matchesRule(rule, tool)));
}

/** One list with exclusions as the two lists of a definition, and back. */
export const splitRules = (rules: readonly string[]) => ({ tools: rules.filter((rule) => !isExclusion(rule)), exclude: rules.filter(isExclusion).map(plain) });
export const joinRules = (tools: readonly string[], exclude: readonly string[]) => [...tools, ...exclude.map((rule) => `!${rule}`)];
