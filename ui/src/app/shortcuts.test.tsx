import { cleanup, fireEvent, renderHook } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { PAGES } from './pages';

const navigate = vi.fn();
vi.mock('@tanstack/react-router', () => ({ useNavigate: () => navigate }));
const { useGoKeys } = await import('./shortcuts');

afterEach(cleanup);

it('goes to a page by two keys, also if the page is rendered anew between them', () => {
  const { rerender } = renderHook(({ pages }) => useGoKeys(pages), { initialProps: { pages: [...PAGES] } });
  fireEvent.keyDown(window, { key: 'g' });
  rerender({ pages: [...PAGES] });
  fireEvent.keyDown(window, { key: 't' });
  expect(navigate).toHaveBeenCalledWith({ to: '/tools' });
});
