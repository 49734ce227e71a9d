import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './app/app.css';
import { createRoot } from 'react-dom/client';
import { sessionQuery } from './api/queries';
import { App } from './app/app';
import { queries } from './app/queries';
import { styleNonce } from './parts/nonce';

// The name under which the libraries of dialogs look for the nonce of their style elements.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() });

// Who is logged in is asked for while the files of the page still load.
void queries.prefetchQuery(sessionQuery);

const root = document.querySelector('#root');
if (root) createRoot(root).render(<App />);
