import { expect, it } from 'vitest';
import { EventParser, readEvents, type ServerEvent } from './sse';

it('reads events whose lines are cut anywhere', () => {
  const text = 'event: text_delta\r\ndata: {"text":"a"}\r\nid: 3\r\n\r\n: ping\n\nevent: end\ndata: one\ndata: two\n\ndata: {"x":1}\n\n';
  for (const size of [1, 2, 3, 7, text.length]) {
    const parser = new EventParser();
    const found: ServerEvent[] = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.push(text.slice(at, at + size)));
    expect(found.map(({ event, data }) => [event, data]), String(size)).toEqual([['text_delta', '{"text":"a"}'], ['end', 'one\ntwo'], ['message', '{"x":1}']]);
    expect(found[0]?.id).toBe('3');
  }
});

it('keeps characters whole that arrive in two pieces', async () => {
  const bytes = new TextEncoder().encode('data: grün\n\n');
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  const found: string[] = [];
  await readEvents(new Response(body), (event) => found.push(event.data));
  expect(found).toEqual(['grün']);
});
