/** Package runners, which download a program before they start it. The server warns about the same list. */
const downloaders = ['npx', 'uvx', 'uv', 'pipx', 'bunx', 'pnpx'];

export const isDownloader = (command: string) => downloaders.includes(command.trim().split('/').pop() ?? '');

/** Whether a pasted configuration, which may be incomplete, uses one as a command. */
export const runsDownloader = (config: string) => [...config.matchAll(/"command"\s*:\s*"([^"]*)"/g)].some(([, command]) => isDownloader(command ?? ''));
