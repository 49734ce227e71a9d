/** The first message of a chat that was just created, on its way to the page of that chat. */
const waiting = new Map<string, string>();

export function keepFirst(chat: string, text: string): void {
  waiting.set(chat, text);
}

export function takeFirst(chat: string): string | undefined {
  const text = waiting.get(chat);
  waiting.delete(chat);
  return text;
}
