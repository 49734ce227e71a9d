import { expect, it } from 'vitest';
import { answerParts } from './parts';

it('takes an answer apart', () => {
  const parts = answerParts([{ type: 'reasoning', text: 'hm' }, { type: 'text', text: 'a' }, { type: 'tool_call', id: '1', name: 't', arguments: { x: 1 } }, { type: 'image', source: {} }, { type: 'text', text: 'b' }]);
  expect(parts).toEqual({ text: 'a\n\nb', reasoning: 'hm', calls: [{ name: 't', args: { x: 1 } }], other: [{ type: 'image', source: {} }] });
  expect(answerParts('plain').text).toBe('plain');
  expect(answerParts(null)).toEqual({ text: '', reasoning: '', calls: [], other: [] });
});
