import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './app/app.css';
import { createRoot } from 'react-dom/client';
import { App } from './app/app';
import { styleNonce } from './parts/nonce';

// The name under which the libraries of dialogs look for the nonce of their style elements.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() });

const root = document.querySelector('#root');
if (root) createRoot(root).render(<App />);
