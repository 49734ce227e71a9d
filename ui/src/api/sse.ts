/** Reads a stream of server-sent events from an answer: `EventSource` can only read, and sends no body. */

export interface ServerEvent {
  event: string;
  data: string;
  id: string | undefined;
}

/** Takes pieces of a stream as they arrive and returns the events that they complete. */
export class EventParser {
  private rest = '';
  private event = '';
  private data: string[] = [];
  private id: string | undefined;

  push(piece: string): ServerEvent[] {
    const found: ServerEvent[] = [];
    this.rest += piece;
    // A carriage return at the end may be the first half of a line end.
    const end = this.rest.endsWith('\r') ? this.rest.length - 1 : this.rest.length;
    const lines = this.rest.slice(0, end).split(/\r\n|\n|\r/);
    this.rest = (lines.pop() ?? '') + this.rest.slice(end);
    for (const line of lines) {
      const event = this.line(line);
      if (event) found.push(event);
    }
    return found;
  }

  private line(line: string): ServerEvent | undefined {
    if (line === '') {
      const event = this.data.length > 0 ? { event: this.event || 'message', data: this.data.join('\n'), id: this.id } : undefined;
      this.event = '';
      this.data = [];
      return event;
    }
    const colon = line.indexOf(':');
    // A comment keeps the connection open.
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.event = value;
    else if (field === 'data') this.data.push(value);
    else if (field === 'id') this.id = value;
    return undefined;
  }
}

/** Hands over each event until the stream ends. */
export async function readEvents(response: Response, onEvent: (event: ServerEvent) => void): Promise<void> {
  if (!response.body) return;
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const event of parser.push(decoder.decode(value, { stream: true }))) onEvent(event);
  }
}
