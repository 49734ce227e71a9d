import { Kbd, Modal, Table } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useT } from '@/i18n';
import type { PageEntry } from './pages';

const GO_WINDOW_MS = 1200;

/** `g t` goes to the tools, `g c` to the calls, … */
export function useGoKeys(pages: PageEntry[]) {
  const navigate = useNavigate();
  // Outside of the effect: data that arrives between the two keys renders the page anew.
  const pressedAt = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))) return;
      if (Date.now() - pressedAt.current < GO_WINDOW_MS) {
        pressedAt.current = 0;
        const page = pages.find((entry) => entry.go === event.key);
        if (page) {
          event.preventDefault();
          void navigate({ to: page.to });
        }
      } else if (event.key === 'g') pressedAt.current = Date.now();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [pages, navigate]);
}

export function Shortcuts({ opened, onClose, pages }: { opened: boolean; onClose: () => void; pages: PageEntry[] }) {
  const t = useT();
  const rows: [string[], string][] = [
    [['Ctrl', 'K'], t('shortcuts.palette')], [['/'], t('shortcuts.filter')], [['j', 'k', '↑', '↓'], t('shortcuts.move')], [['Enter'], t('shortcuts.open')],
    [['Esc'], t('shortcuts.close')], [['Ctrl', 'Enter'], t('shortcuts.run')],
    ...pages.filter((page) => page.go).map((page): [string[], string] => [['g', page.go ?? ''], t('shortcuts.go', { page: t(page.label) })]),
    [['?'], t('shortcuts.help')],
  ];
  return (
    <Modal opened={opened} onClose={onClose} title={t('shortcuts.title')} size="sm">
      <Table>
        <Table.Tbody>
          {rows.map(([keys, text]) => (
            <Table.Tr key={text}><Table.Td w={130}>{keys.map((key) => <Kbd key={key} size="xs" mr={4}>{key}</Kbd>)}</Table.Td><Table.Td>{text}</Table.Td></Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
