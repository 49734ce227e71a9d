import { localStorageColorSchemeManager, MantineProvider, MantineThemeProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { useMemo, type ReactNode } from 'react';
import { I18nProvider, useT } from '@/i18n';
import { AskProvider } from '@/parts/feedback';
import { styleNonce } from '@/parts/nonce';
import { queries } from './queries';
import { router } from './router';
import { cssVariables, theme } from './theme';

const colorScheme = localStorageColorSchemeManager({ key: 'haft.theme' });

/** Names the buttons that Mantine makes, in the language of the page. */
function ButtonNames({ children }: { children: ReactNode }) {
  const t = useT();
  const names = useMemo(() => ({ components: { CloseButton: { defaultProps: { 'aria-label': t('common.close') } } } }), [t]);
  return <MantineThemeProvider theme={names} inherit>{children}</MantineThemeProvider>;
}

export function App() {
  return (
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto" colorSchemeManager={colorScheme} getStyleNonce={() => styleNonce() ?? ''}>
      <I18nProvider>
        <QueryClientProvider client={queries}>
          <ButtonNames>
            <AskProvider>
              <RouterProvider router={router} />
              <Notifications position="bottom-right" limit={4} transitionDuration={120} />
            </AskProvider>
          </ButtonNames>
        </QueryClientProvider>
      </I18nProvider>
    </MantineProvider>
  );
}
