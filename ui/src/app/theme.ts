import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from '@mantine/core';

const dark: MantineColorsTuple = [
  '#dfe2e8', '#c3c8d1', '#9aa1ad', '#6f7682', '#434954', '#343943', '#282c34', '#1b1e24', '#15181d', '#0f1115',
];

const small = { defaultProps: { size: 'xs' } };

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 8 },
  colors: { dark },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  spacing: { xs: '0.25rem', sm: '0.5rem', md: '0.75rem', lg: '1rem', xl: '1.5rem' },
  defaultRadius: 'md',
  radius: { xs: '2px', sm: '4px', md: '6px', lg: '6px', xl: '6px' },
  headings: { sizes: { h1: { fontSize: '1.25rem' }, h2: { fontSize: '1rem' }, h3: { fontSize: '0.875rem' } }, fontWeight: '600' },
  respectReducedMotion: true,
  focusRing: 'auto',
  components: {
    Button: small, TextInput: small, Textarea: small, Select: small, MultiSelect: small, NumberInput: small,
    PasswordInput: small, TagsInput: small, Checkbox: small, Switch: small, SegmentedControl: small, Radio: small,
    JsonInput: small, Autocomplete: small, FileButton: small, Pill: small,
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray', size: 'md' } },
    Text: { defaultProps: { size: 'sm' } },
    Anchor: { defaultProps: { size: 'sm' } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: false, multiline: true, maw: 420 } },
    Menu: { defaultProps: { shadow: 'md', transitionProps: { duration: 100 } } },
    Modal: { defaultProps: { centered: true, transitionProps: { duration: 100 } } },
    Drawer: { defaultProps: { transitionProps: { duration: 100 } } },
    Tabs: { defaultProps: { keepMounted: false } },
    Card: { defaultProps: { withBorder: true, padding: 'lg' } },
    Paper: { defaultProps: { withBorder: true } },
    Table: { defaultProps: { fz: 'sm' } },
  },
});

/** The colours of charts; neighbours differ in brightness, too. */
const series = (shade: string) => Object.fromEntries(['indigo', 'orange', 'teal', 'grape', 'yellow', 'red', 'cyan', 'gray'].map((name, index) => [`--haft-series-${index}`, `var(--mantine-color-${name}-${shade})`]));

/** Notices are tinted in the colours of the states; the tints of the library are a solid brown in the dark theme. */
const NOTICES = Object.fromEntries([['yellow', 'warn'], ['red', 'bad'], ['green', 'good']].flatMap(([color, state]) => [
  [`--mantine-color-${color}-light-color`, `var(--haft-${state})`], [`--mantine-color-${color}-light`, `color-mix(in srgb, var(--haft-${state}) 10%, transparent)`],
]));

/** Text colours with AA contrast in both themes; the defaults are too light. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5a616b',
    '--mantine-color-placeholder': '#6b727c',
    '--mantine-color-anchor': 'var(--mantine-color-indigo-8)',
    '--mantine-color-error': 'var(--mantine-color-red-9)',
    '--haft-surface': 'var(--mantine-color-gray-0)',
    '--haft-border': 'var(--mantine-color-gray-3)',
    '--haft-hover': 'var(--mantine-color-gray-1)',
    '--haft-active': 'var(--mantine-color-indigo-0)',
    '--haft-good': '#237032',
    '--haft-warn': '#a34a00',
    '--haft-bad': '#c92a2a',
    '--haft-info': '#1c5fae',
    '--haft-chart-good': 'var(--mantine-color-indigo-4)',
    '--haft-chart-bad': 'var(--mantine-color-red-6)',
    '--haft-added': '#e6f6e9',
    '--haft-removed': '#fdecec',
    '--haft-mark': '#fff0b8',
    ...series('7'),
    ...NOTICES,
  },
  dark: {
    '--mantine-color-dimmed': '#a3abb8',
    '--mantine-color-placeholder': '#98a0ad',
    '--mantine-color-anchor': 'var(--mantine-color-indigo-3)',
    '--mantine-color-error': 'var(--mantine-color-red-4)',
    '--haft-surface': 'var(--mantine-color-dark-8)',
    '--haft-border': 'var(--mantine-color-dark-5)',
    '--haft-hover': 'var(--mantine-color-dark-6)',
    '--haft-active': '#262d47',
    '--haft-good': '#69c97d',
    '--haft-warn': '#f2b45c',
    '--haft-bad': '#ff8787',
    '--haft-info': '#78b4f5',
    '--haft-chart-good': 'var(--mantine-color-indigo-5)',
    '--haft-chart-bad': 'var(--mantine-color-red-5)',
    '--haft-added': '#163222',
    '--haft-removed': '#3d1d21',
    '--haft-mark': '#5c4a10',
    ...series('5'),
    ...NOTICES,
  },
});
