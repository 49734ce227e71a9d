import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { I18nProvider } from '@/i18n';
import { AskProvider } from '@/parts/feedback';
import { styleNonce } from '@/parts/nonce';
import { queries } from './queries';
import { router } from './router';
import { cssVariables, theme } from './theme';

const colorScheme = localStorageColorSchemeManager({ key: 'haft.theme' });

export function App() {
  return (
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto" colorSchemeManager={colorScheme} getStyleNonce={() => styleNonce() ?? ''}>
      <I18nProvider>
        <QueryClientProvider client={queries}>
          <AskProvider>
            <RouterProvider router={router} />
            <Notifications position="bottom-right" limit={4} transitionDuration={120} />
          </AskProvider>
        </QueryClientProvider>
      </I18nProvider>
    </MantineProvider>
  );
}
