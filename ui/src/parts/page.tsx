/** The five kinds of page are built from these: header, toolbar, list with drawer, scrolling content. */
import { ActionIcon, Menu, Skeleton, Stack, Tooltip } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { IconArrowsDiagonal, IconDots, IconX } from '@tabler/icons-react';
import { useEffect, useState, type ReactNode } from 'react';
import { useT } from '@/i18n';
import classes from './parts.module.css';

interface PageProps {
  title: string;
  count?: number | undefined;
  primary?: ReactNode;
  menu?: ReactNode;
  children: ReactNode;
}

export function Page({ title, count, primary, menu, children }: PageProps) {
  const t = useT();
  useEffect(() => {
    document.title = document.title.replace(/^((?:\(\d+\) )?).*$/, `$1${title} · haft`);
  }, [title]);
  return (
    <div className={classes.page}>
      <header className={classes.pageHeader}>
        <h1 className={classes.pageTitle}>{title}</h1>
        {count !== undefined && <span className={classes.count}>{count.toLocaleString()}</span>}
        <span className={classes.spacer} />
        {primary}
        {menu && (
          <Menu position="bottom-end">
            <Menu.Target><ActionIcon aria-label={t('common.more')}><IconDots size={16} /></ActionIcon></Menu.Target>
            <Menu.Dropdown>{menu}</Menu.Dropdown>
          </Menu>
        )}
      </header>
      {children}
    </div>
  );
}

export function Toolbar({ children }: { children: ReactNode }) {
  return <div className={classes.toolbar} role="search">{children}</div>;
}

export function Content({ children, narrow = false }: { children: ReactNode; narrow?: boolean }) {
  return <div className={classes.scroll}><div className={narrow ? classes.narrow : undefined}>{children}</div></div>;
}

/** A list, and beside it what was opened. On narrow screens the drawer covers the list. */
export function Split({ drawer, children }: { drawer: ReactNode; children: ReactNode }) {
  return (
    <div className={classes.split} data-open={drawer ? 'true' : 'false'}>
      <div className={classes.splitMain}>{children}</div>
      {drawer}
    </div>
  );
}

interface DrawerProps {
  title: ReactNode;
  label: string;
  actions?: ReactNode;
  onClose: () => void;
  onExpand?: () => void;
  children: ReactNode;
}

export function Drawer({ title, label, actions, onClose, onExpand, children }: DrawerProps) {
  const t = useT();
  useHotkeys([['Escape', () => { if (document.querySelector('[role="dialog"]') === null) onClose(); }]]);
  return (
    <aside className={classes.drawer} aria-label={label}>
      <div className={classes.drawerHeader}>
        <div className={classes.drawerTitle}>{title}</div>
        {actions}
        {onExpand && (
          <Tooltip label={t('common.fullPage')}>
            <ActionIcon onClick={onExpand} aria-label={t('common.fullPage')}><IconArrowsDiagonal size={16} /></ActionIcon>
          </Tooltip>
        )}
        <ActionIcon onClick={onClose} aria-label={t('common.close')}><IconX size={16} /></ActionIcon>
      </div>
      <div className={classes.drawerBody}>{children}</div>
    </aside>
  );
}

/** Grey lines in place of content, only where loading takes long enough to notice. */
export function Loading({ rows = 6 }: { rows?: number }) {
  const t = useT();
  const [visible, setVisible] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setVisible(true), 150);
    return () => clearTimeout(timer);
  }, []);
  if (!visible) return null;
  return (
    <Stack gap="sm" p="xl" role="status" aria-label={t('common.loading')}>
      {Array.from({ length: rows }, (_, index) => <Skeleton key={index} h={16} w={`${90 - (index * 17) % 40}%`} />)}
    </Stack>
  );
}

export function Guided({ children, preview }: { children: ReactNode; preview: ReactNode }) {
  return <div className={classes.steps}><div>{children}</div><div>{preview}</div></div>;
}
