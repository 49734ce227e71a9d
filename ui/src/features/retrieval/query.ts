/** Trying a pipeline: the filter as text, the words to mark, the place of a hit. */
import type { Hit } from '@/api/retrieval-types';
import type { JsonObject } from '@/api/types';

/** `team = core`, one per line, or a filter as JSON. */
export function readFilter(text: string): { filter: JsonObject | undefined } | { error: string } {
  const trimmed = text.trim();
  if (trimmed === '') return { filter: undefined };
  if (trimmed.startsWith('{')) {
    try {
      return { filter: JSON.parse(trimmed) as JsonObject };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
  const filter: JsonObject = {};
  for (const line of trimmed.split('\n').filter((each) => each.trim() !== '')) {
    const match = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/.exec(line);
    if (!match) return { error: line };
    const [, key = '', value = ''] = match;
    filter[key] = /^(?:true|false|-?\d+(?:\.\d+)?)$/.test(value) ? (JSON.parse(value) as boolean | number) : value.replace(/^"(.*)"$/, '$1');
  }
  return { filter };
}

/** The shortest word that is marked: shorter ones are in every sentence, except for `VPN` and `2FA`. */
const MIN_WORD = 4;
const SHORT_NAME = /^[\p{Lu}\p{N}]{2,}$/u;
/** Stems are compared by the server; here, a common beginning is near enough. */
const STEM = 5;

/** The words of a query that are marked in hits, as beginnings of words. */
export function markedWords(query: string): string[] {
  const words = (query.match(/[\p{L}\p{N}_-]+/gu) ?? []).filter((word) => word.length >= MIN_WORD || SHORT_NAME.test(word)).map((word) => word.toLowerCase());
  return [...new Set(words.map((word) => word.slice(0, Math.max(STEM, word.length - 3))))];
}

/** A text in pieces: those with an odd index are words to mark. */
export function splitMarked(text: string, query: string): string[] {
  const words = markedWords(query).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  if (words.length === 0) return [text];
  return text.split(new RegExp(String.raw`((?<![\p{L}\p{N}])(?:${words.join('|')})[\p{L}\p{N}]*)`, 'giu'));
}

/** How good a hit is beside the best one. */
export function share(hit: Hit, hits: readonly Hit[]): number {
  const best = Math.max(...hits.map((each) => each.score));
  return best > 0 ? Math.max(0, Math.min(1, hit.score / best)) : 0;
}

const isUrl = (line: string) => /^https?:\/\/[^\s/]+/i.test(line);

/** One address per line, without empty lines and repetitions. */
export function readUrls(text: string): { urls: string[]; wrong: string[] } {
  const lines = [...new Set(text.split(/\s+/).filter(Boolean))];
  return { urls: lines.filter(isUrl), wrong: lines.filter((line) => !isUrl(line)) };
}
