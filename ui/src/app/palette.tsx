/** Ctrl K: finds any tool, page or action. */
import { Modal, Text, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconCode, IconFileImport, IconMessages, IconFileSearch, IconPlus, IconRobot, IconSunMoon, IconTicket, IconTool, IconUserPlus, type Icon } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { client, data } from '@/api/client';
import { toolRef } from '@/api/queries';
import { isPerson, useMay, useSession } from '@/api/session';
import { useT } from '@/i18n';
import { Highlight } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import classes from './layout.module.css';
import type { PageEntry } from './pages';

interface Entry {
  id: string;
  group: string;
  label: string;
  note?: string;
  icon: Icon;
  run: (alternative: boolean) => void;
}

const MAX_TOOLS = 12;

function useFoundTools(query: string, enabled: boolean) {
  const [wanted] = useDebouncedValue(query, 120);
  return useQuery({
    queryKey: ['tools', 'search', wanted],
    queryFn: async () => (wanted.trim() === ''
      ? (await data(client.GET('/tools', { params: { query: { fields: 'summary', page_size: MAX_TOOLS } } }))).tools
      : (await data(client.GET('/tools/search', { params: { query: { q: wanted.slice(0, 200), page_size: MAX_TOOLS } } }))).tools),
    enabled,
    placeholderData: keepPreviousData,
  }).data ?? [];
}

interface PaletteProps {
  onClose: () => void;
  pages: PageEntry[];
  /** Calls a tool with a form. */
  onCall: (tool: string) => void;
}

export function Palette({ opened, onClose, pages, onCall }: PaletteProps & { opened: boolean }) {
  const t = useT();
  return (
    <Modal.Root opened={opened} onClose={onClose} padding={0} size="lg" yOffset="12vh" centered={false}>
      <Modal.Overlay />
      <Modal.Content aria-label={t('palette.title')}>
        <Modal.Body>{opened && <PaletteBody onClose={onClose} pages={pages} onCall={onCall} />}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

function PaletteBody({ onClose, pages, onCall }: PaletteProps) {
  const t = useT();
  const id = useId();
  const navigate = useNavigate();
  const mayCall = useMay('caller');
  const mayEdit = useMay('editor');
  const mayAdmin = useMay('admin');
  const mayOwnTokens = isPerson(useSession());
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const found = useFoundTools(query, true);

  const entries = useMemo(() => {
    const go = (to: string, search: Record<string, string> = {}, params: Record<string, string> = {}) => {
      onClose();
      void navigate({ to, search: search as never, params: params as never });
    };
    const words = query.trim().toLowerCase();
    const matches = (label: string) => words === '' || label.toLowerCase().includes(words);
    const result: Entry[] = [];
    for (const page of pages) {
      if (matches(t(page.label))) result.push({ id: page.to, group: t('palette.pages'), label: t(page.label), icon: page.icon, run: () => go(page.to) });
    }
    const actions: (Entry | false)[] = [
      mayCall && { id: 'chat', group: t('palette.actions'), label: t('palette.newChat'), icon: IconMessages, run: () => go('/chat', { new: '1' }) },
      mayEdit && { id: 'new', group: t('palette.actions'), label: t('palette.newTool'), icon: IconPlus, run: () => go('/tools/new') },
      mayEdit && { id: 'agent', group: t('palette.actions'), label: t('palette.newAgent'), icon: IconRobot, run: () => go('/agents/new') },
      mayEdit && { id: 'pipeline', group: t('palette.actions'), label: t('palette.newPipeline'), icon: IconFileSearch, run: () => go('/retrieval', { new: '1' }) },
      mayEdit && { id: 'artifact', group: t('palette.actions'), label: t('palette.newArtifact'), icon: IconCode, run: () => go('/artifacts/new') },
      mayEdit && { id: 'import', group: t('palette.actions'), label: t('palette.importThings'), icon: IconFileImport, run: () => go('/import') },
      mayAdmin && { id: 'person', group: t('palette.actions'), label: t('palette.invite'), icon: IconUserPlus, run: () => go('/people', { new: '1' }) },
      (mayAdmin || mayOwnTokens) && { id: 'token', group: t('palette.actions'), label: t('palette.newToken'), icon: IconTicket, run: () => go('/tokens', { new: '1' }) },
      { id: 'theme', group: t('palette.actions'), label: t('palette.theme'), icon: IconSunMoon, run: () => { onClose(); setColorScheme(scheme === 'dark' ? 'light' : 'dark'); } },
    ];
    for (const action of actions) if (action && matches(action.label)) result.push(action);
    const tools = found.map((tool): Entry => ({
      id: toolRef(tool), group: t('palette.tools'), label: visibleText(tool.name), note: visibleText(tool.description.slice(0, 120)), icon: IconTool,
      run: (alternative) => { if (alternative && mayCall) { onClose(); onCall(toolRef(tool)); } else go('/tools/$ref', {}, { ref: toolRef(tool) }); },
    }));
    // Tools arrive later: at the end, they move nothing from under the mouse.
    return [...result, ...tools];
  }, [query, found, pages, t, navigate, onClose, onCall, mayCall, mayEdit, mayAdmin, mayOwnTokens, scheme, setColorScheme]);

  const selected = Math.min(at, Math.max(0, entries.length - 1));
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
    // The selection decides which element that is.
    // oxlint-disable-next-line react/exhaustive-effect-dependencies
  }, [selected]);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt(Math.min(entries.length - 1, selected + 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(0, selected - 1));
    else if (event.key === 'Enter') entries[selected]?.run(event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  };
  return (
    <div>
      <input className={classes.paletteInput} value={query} placeholder={t('palette.placeholder')} aria-label={t('palette.placeholder')} role="combobox" aria-expanded
        aria-controls={id} aria-activedescendant={`${id}-${selected}`} data-autofocus
        onChange={(event) => { setQuery(event.currentTarget.value); setAt(0); }} onKeyDown={onKey} />
      <div ref={list} className={classes.paletteList} role="listbox" id={id} aria-label={t('palette.title')}>
        {entries.length === 0 && <Text c="dimmed" p="lg">{t('palette.none')}</Text>}
        {entries.map((entry, index) => {
          const Shape = entry.icon;
          return (
            <div key={`${entry.group}${entry.id}`} role="presentation">
              {entry.group !== entries[index - 1]?.group && <div className={classes.section}>{entry.group}</div>}
              {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- the input handles the keys */}
              <div id={`${id}-${index}`} role="option" tabIndex={-1} aria-selected={index === selected} className={classes.option} onClick={(event) => entry.run(event.ctrlKey)} onMouseMove={() => setAt(index)}>
                <Shape size={16} stroke={1.7} aria-hidden />
                <span className={classes.optionText}><Highlight text={entry.label} query={query} />{entry.note && <Text span c="dimmed" ml={8}>{entry.note}</Text>}</span>
              </div>
            </div>
          );
        })}
      </div>
      <Text size="xs" c="dimmed" px="lg" py={6} style={{ borderTop: '1px solid var(--haft-border)' }}>{t('palette.hint')}</Text>
    </div>
  );
}
