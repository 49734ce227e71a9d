import { ActionIcon, Anchor, Avatar, Button, Drawer, Group, Kbd, Menu, Stack, Text, Tooltip, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useHotkeys, useLocalStorage, useMediaQuery } from '@mantine/hooks';
import {
  IconBook2, IconDots, IconKeyboard, IconLanguage, IconLayoutSidebarLeftCollapse, IconLayoutSidebarLeftExpand, IconLink, IconLogout, IconMoon,
  IconPlugConnectedX, IconSearch, IconSun, IconUser,
} from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useNavigate, useRouterState } from '@tanstack/react-router';
import { Suspense, useEffect, useRef, useState } from 'react';
import { account } from '@/api/actions';
import { connection, useConnection } from '@/api/connection';
import { ApiError } from '@/api/error';
import { startLiveUpdates, useLiveMode } from '@/api/events';
import { approvalsQuery, sessionQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import type { Session } from '@/api/types';
import { useI18n, useT } from '@/i18n';
import { Boundary, EmptyState, ErrorPanel } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { lazyPart } from '@/parts/lazy';
import { Loading } from '@/parts/page';
import classes from './layout.module.css';
import { API_REFERENCE, visiblePages, type PageEntry } from './pages';
import { Palette } from './palette';
import { Shortcuts, useGoKeys } from './shortcuts';

// The tester loads when somebody calls a tool from the palette.
const QuickCall = lazyPart(async () => (await import('@/features/tools')).QuickCall);

function toLogin() {
  window.location.assign(`/login?next=${encodeURIComponent(window.location.pathname + window.location.search)}`);
}

function Banner() {
  const t = useT();
  const state = useConnection();
  const queries = useQueryClient();
  useEffect(() => {
    const lose = () => connection.report('lost');
    window.addEventListener('offline', lose);
    return () => window.removeEventListener('offline', lose);
  }, []);
  useEffect(() => {
    if (state !== 'lost') return;
    const timer = setInterval(() => void queries.invalidateQueries({ queryKey: sessionQuery.queryKey }), 3000);
    return () => {
      clearInterval(timer);
      void queries.invalidateQueries();
    };
  }, [state, queries]);
  if (state === 'ok') return <div />;
  return (
    <div className={classes.banner} role="status">
      <IconPlugConnectedX size={16} aria-hidden />
      <span>{t(state === 'lost' ? 'banner.lost' : 'banner.expired')}</span>
      {state === 'lost'
        ? <Button variant="default" size="compact-xs" onClick={() => void queries.invalidateQueries()}>{t('banner.retry')}</Button>
        : <Button size="compact-xs" onClick={toLogin}>{t('banner.login')}</Button>}
    </div>
  );
}

/** The number of waiting approvals: in the navigation, in the title, and as a desktop notification. */
function useWaiting(): number {
  const t = useT();
  const navigate = useNavigate();
  const waiting = useQuery(approvalsQuery('waiting')).data?.approvals.filter((approval) => approval.may_decide) ?? [];
  const count = waiting.length;
  const seen = useRef<Set<string>>(undefined);
  useEffect(() => {
    document.title = document.title.replace(/^(?:\(\d+\) )?/, count > 0 ? `(${count}) ` : '');
  }, [count]);
  useEffect(() => {
    const fresh = seen.current === undefined ? [] : waiting.filter((approval) => !seen.current?.has(approval.id));
    if (waiting.length > 0 || seen.current !== undefined) seen.current = new Set(waiting.map((approval) => approval.id));
    else seen.current = new Set();
    if (fresh[0] && document.hidden && 'Notification' in window && Notification.permission === 'granted') {
      const notification = new Notification(t('status.awaiting_approval'), { body: `${fresh[0].requested_by}: ${fresh[0].tool}`, tag: fresh[0].id });
      const { id } = fresh[0];
      notification.addEventListener('click', () => {
        window.focus();
        void navigate({ to: '/approvals', search: { open: id } as never });
      });
    }
  });
  return count;
}

function isActive(path: string, to: string): boolean {
  return to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
}

function NavItem({ page, path, count, collapsed, onClick }: { page: PageEntry; path: string; count: number; collapsed: boolean; onClick?: () => void }) {
  const t = useT();
  const Shape = page.icon;
  const active = isActive(path, page.to);
  const isCounted = page.to === '/approvals' && count > 0;
  return (
    <Tooltip label={t(page.label)} position="right" disabled={!collapsed}>
      <Link to={page.to} className={classes.item} data-active={active} aria-current={active ? 'page' : undefined} {...(collapsed ? { 'aria-label': isCounted ? `${t(page.label)} ${count}` : t(page.label) } : {})} onClick={onClick}>
        <Shape size={17} stroke={1.7} aria-hidden />
        <span className={classes.label}>{t(page.label)}</span>
        {isCounted && <span className={classes.badge}>{count}</span>}
      </Link>
    </Tooltip>
  );
}

function NavList({ pages, path, count, collapsed = false, onNavigate }: { pages: PageEntry[]; path: string; count: number; collapsed?: boolean; onNavigate?: () => void }) {
  const t = useT();
  return (
    <>
      {pages.map((page, index) => (
        <div key={page.to}>
          {page.section && page.section !== pages[index - 1]?.section && <div className={classes.section}>{t(page.section)}</div>}
          <NavItem page={page} path={path} count={count} collapsed={collapsed} {...(onNavigate ? { onClick: onNavigate } : {})} />
        </div>
      ))}
    </>
  );
}

function AccountMenu({ session }: { session: Session }) {
  const { t, language, setLanguage } = useI18n();
  return (
    <Menu position="bottom-end" width={250}>
      <Menu.Target>
        <ActionIcon aria-label={t('header.account')} size="lg" radius="xl"><Avatar size={26} radius="xl" color="indigo" variant="filled" alt=""><IconUser size={15} aria-hidden /></Avatar></ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Stack gap={0} px="md" py="sm">
          <Text fw={600} truncate>{visibleText(session.name)}</Text>
          {session.actor?.email && <Text c="dimmed" size="xs" truncate>{visibleText(session.actor.email)}</Text>}
          <Text c="dimmed" size="xs">{t(`role.${session.role}`)} · {t('account.tenant', { tenant: session.tenant })}</Text>
          {session.platform && <Text c="dimmed" size="xs">{t('account.platform')}</Text>}
          {session.elevated && <Text c="dimmed" size="xs">{t('account.elevated')}</Text>}
        </Stack>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLanguage size={15} />} onClick={() => setLanguage(language === 'en' ? 'de' : 'en')}>{language === 'en' ? 'Deutsch' : 'English'}</Menu.Item>
        <Menu.Item leftSection={<IconLink size={15} />} component={Link} to="/settings">{t('account.loginLink')}</Menu.Item>
        <Menu.Item leftSection={<IconBook2 size={15} />} component="a" href={API_REFERENCE.href}>{t('account.apiReference')}</Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={15} />} onClick={() => void account.logout()}>{t('account.logout')}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function Header({ session, onSearch, onHelp }: { session: Session; onSearch: () => void; onHelp: () => void }) {
  const t = useT();
  const live = useLiveMode();
  const isPhone = useMediaQuery('(max-width: 48em)');
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  return (
    <header className={classes.header}>
      <button type="button" className={classes.search} onClick={onSearch}>
        <IconSearch size={15} aria-hidden />
        <span className={classes.hint}>{t('header.search')}</span>
        {!isPhone && <Kbd size="xs">Ctrl K</Kbd>}
      </button>
      <span className={classes.spacer} />
      {!isPhone && session.tenant !== 'default' && <Text c="dimmed">{t('account.tenant', { tenant: session.tenant })}</Text>}
      {!isPhone && live === 'live' && <Tooltip label={t('live.hint')}><Text size="xs" c="dimmed"><Text span c="var(--haft-good)" aria-hidden>●</Text> {t('live.on')}</Text></Tooltip>}
      <Tooltip label={t('header.theme')}>
        <ActionIcon size="lg" aria-label={t('header.theme')} onClick={() => setColorScheme(scheme === 'dark' ? 'light' : 'dark')}>
          {scheme === 'dark' ? <IconSun size={17} /> : <IconMoon size={17} />}
        </ActionIcon>
      </Tooltip>
      {!isPhone && (
        <Tooltip label={`${t('header.help')} (?)`}>
          <ActionIcon size="lg" aria-label={t('header.help')} onClick={onHelp}><IconKeyboard size={17} /></ActionIcon>
        </Tooltip>
      )}
      <AccountMenu session={session} />
    </header>
  );
}

function BottomBar({ pages, path, count }: { pages: PageEntry[]; path: string; count: number }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  const first = pages.slice(0, 4);
  return (
    <nav className={classes.bottom} aria-label={t('nav.main')}>
      {first.map((page) => {
        const Shape = page.icon;
        return (
          <Link key={page.to} to={page.to} className={classes.tab} data-active={isActive(path, page.to)} aria-current={isActive(path, page.to) ? 'page' : undefined}>
            <Shape size={20} stroke={1.7} aria-hidden />{t(page.label)}
            {page.to === '/approvals' && count > 0 && <span className={classes.badge}>{count}</span>}
          </Link>
        );
      })}
      <button type="button" className={classes.tab} onClick={() => setOpen(true)}><IconDots size={20} aria-hidden />{t('nav.more')}</button>
      <Drawer opened={open} onClose={() => setOpen(false)} position="bottom" size="75%" title={t('nav.more')}>
        <NavList pages={pages.slice(4)} path={path} count={count} onNavigate={() => setOpen(false)} />
      </Drawer>
    </nav>
  );
}

function Frame() {
  const t = useT();
  const session = useSession();
  const path = useLocation({ select: (location) => location.pathname });
  // The address of the page that is shown, which is not yet the one that is being loaded.
  const shown = useRouterState({ select: (state) => state.resolvedLocation?.href });
  const queries = useQueryClient();
  const [calling, setCalling] = useState<string>();
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const [collapsed, setCollapsed] = useLocalStorage({ key: 'haft.nav', defaultValue: false });
  const pages = visiblePages(session);
  const count = useWaiting();
  useEffect(() => startLiveUpdates(queries), [queries]);
  useHotkeys([['mod+K', () => setPalette(true)]], []);
  useHotkeys([['shift+?', () => setHelp(true)], ['?', () => setHelp(true)], ['/', () => document.querySelector<HTMLInputElement>('[data-filter]')?.focus()]]);
  useGoKeys(pages);
  return (
    <div className={classes.app} data-collapsed={collapsed}>
      <a href="#main" className={classes.skip}>{t('nav.skip')}</a>
      <Banner />
      <nav className={classes.nav} aria-label={t('nav.main')}>
        <Link to="/" className={classes.brand} aria-label="haft"><img src="/ui/favicon.svg" width={20} height={20} alt="" /><span className={classes.label}>haft</span></Link>
        <NavList pages={pages} path={path} count={count} collapsed={collapsed} />
        <span className={classes.spacer} />
        <Tooltip label={t(collapsed ? 'nav.expand' : 'nav.collapse')} position="right">
          <ActionIcon aria-label={t(collapsed ? 'nav.expand' : 'nav.collapse')} onClick={() => setCollapsed(!collapsed)} mt="sm">
            {collapsed ? <IconLayoutSidebarLeftExpand size={17} /> : <IconLayoutSidebarLeftCollapse size={17} />}
          </ActionIcon>
        </Tooltip>
      </nav>
      <Header session={session} onSearch={() => setPalette(true)} onHelp={() => setHelp(true)} />
      <main className={classes.main} id="main" tabIndex={-1} data-location={shown}>
        <Boundary key={path} title={t('error.crash')}><Outlet /></Boundary>
      </main>
      <BottomBar pages={pages} path={path} count={count} />
      <Palette opened={palette} onClose={() => setPalette(false)} pages={pages} onCall={setCalling} />
      {calling && <Suspense><QuickCall key={calling} target={calling} onClose={() => setCalling(undefined)} /></Suspense>}
      <Shortcuts opened={help} onClose={() => setHelp(false)} pages={pages} />
    </div>
  );
}

/** Shows pages once it is known who is logged in. */
export function Layout() {
  const t = useT();
  const session = useQuery(sessionQuery);
  if (session.data) return <Frame />;
  if (session.error instanceof ApiError && session.error.status === 401) {
    toLogin();
    return null;
  }
  if (session.error) {
    return (
      <Group justify="center" pt="15vh" px="lg">
        <Stack maw="32rem" w="100%">
          <ErrorPanel error={session.error} onRetry={() => void session.refetch()} />
          <Anchor href="/login">{t('banner.login')}</Anchor>
        </Stack>
      </Group>
    );
  }
  return <Loading />;
}

export function NotFound() {
  const t = useT();
  return <EmptyState title={t('common.notFound')} action={<Button component={Link} to="/">{t('common.goHome')}</Button>}>{t('common.notFoundFix')}</EmptyState>;
}
