/** The parts of an answer of a model. */
export interface AnswerParts {
  text: string;
  reasoning: string;
  calls: { name: string; args: unknown }[];
  /** What is none of these. */
  other: unknown[];
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

export function answerParts(content: unknown): AnswerParts {
  const parts: AnswerParts = { text: '', reasoning: '', calls: [], other: [] };
  const texts: string[] = [];
  const reasons: string[] = [];
  for (const part of Array.isArray(content) ? (content as unknown[]) : [content]) {
    if (typeof part === 'string') texts.push(part);
    else if (isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string') texts.push(part['text']);
    else if (isObject(part) && part['type'] === 'reasoning') reasons.push(typeof part['text'] === 'string' ? part['text'] : '');
    else if (isObject(part) && part['type'] === 'tool_call') parts.calls.push({ name: String(part['name'] ?? ''), args: part['arguments'] });
    else if (part !== null && part !== undefined) parts.other.push(part);
  }
  return { ...parts, text: texts.join('\n\n'), reasoning: reasons.filter(Boolean).join('\n\n') };
}
